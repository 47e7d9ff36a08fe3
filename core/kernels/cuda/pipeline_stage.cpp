#include "core/kernels/cuda/pipeline_stage.h"

#include <algorithm>

namespace sweep::cuda {

PipelineStage::PipelineStage(const Network& network, const ProgramOptions& program, std::size_t fed_samples,
                             Placement placement, FedArrays fed)
    : program_options_(program),
      device_(program.device),
      runner_(network, program, fed_samples, placement, fed),
      unused_totals_(program.stage.in_micro_batches ? runner_.program().totals().size() : 0,
                     "sums of micro-batches") {
  runner_.stream().clear(unused_totals_.data(), unused_totals_.size() * sizeof(Totals));
}

std::vector<bool> PipelineStage::whole_batch_ops() const {
  std::vector<bool> ops;
  for (const auto& op : runner_.program().network().ops) ops.push_back(op->sum_bytes(Phase::kForward) > 0);
  if (is_last()) ops.push_back(false);
  return ops;
}

void PipelineStage::link(std::vector<std::unique_ptr<PipelineStage>>& stages) {
  for (std::size_t later = 1; later < stages.size(); ++later) {
    for (const SharedValue& value : stages[later]->program().network().shared) {
      for (std::size_t earlier = later; earlier-- > 0;) {
        const auto& known = stages[earlier]->program().network().shared;
        const auto found = std::find_if(known.begin(), known.end(),
                                        [&](const SharedValue& v) { return v.value == value.value; });
        if (found == known.end()) continue;
        PipelineStage &from = *stages[earlier], &to = *stages[later];
        to.values_.push_back({&from, value, *found});
        from.readers_.push_back(&to);
        if (value.gradient) {
          from.gradients_.push_back({&to, *found, value});
          to.readers_.push_back(&from);
        }
        break;
      }
    }
  }
  for (const auto& stage : stages) {
    for (const auto* links : {&stage->values_, &stage->gradients_}) {
      for (const Link& link : *links) {
        stage->runner_.select();
        reach_device(link.other->device_);
      }
    }
  }
}

void PipelineStage::join_optimizers(std::vector<std::unique_ptr<PipelineStage>>& stages) {
  if (!stages.front()->program().optimizer().clips() || stages.size() == 1) return;
  int all = 0, first = 0;
  for (const auto& stage : stages) all += stage->program().optimizer().square_count();
  for (const auto& stage : stages) {
    stage->runner_.select();
    Optimizer& optimizer = stage->program().optimizer();
    optimizer.join(first, all);
    first += optimizer.square_count();
    for (const auto& other : stages) {
      if (other == stage) continue;
      stage->clipped_.push_back(other.get());
      stage->readers_.push_back(other.get());
    }
  }
}

void PipelineStage::join(DeviceGroup& devices, std::vector<int> first_shares) {
  runner_.select();
  group_ = &devices;
  // A copy may come after an exchange on the stream.
  runner_.feed().wait_by([&devices](const Event& event) { devices.wait(event); });
  first_shares_ = std::move(first_shares);
}

void PipelineStage::prepare(const StageRound& round) {
  runner_.select();
  const auto prepare_for = [&](int images) {
    if (images == 0 || !prepared_.insert(images).second) return;
    const Pass pass = program().make_pass(runner_.stream(), images, {});
    for (const auto& op : program().network().ops) op->prepare(pass);
  };
  for (const StageRound::Share& share : round.shares) prepare_for(share.size());
  for (const MicroBatch& micro_batch : round.micro_batches) prepare_for(micro_batch.end - micro_batch.begin);
}

void PipelineStage::feed(const Batch& batch, const StepInput& input) {
  runner_.select();
  runner_.feed().add(runner_.stream(), batch, input);
  inputs_ = runner_.feed().upload(runner_.stream());
}

void PipelineStage::begin(Task task, const StageRound& round, bool waits) {
  runner_.select();
  task_ = task;
  round_ = &round;
  joint_ = program().joint_pass(round.sizes);
  waits_ = waits;
  for (const PipelineStage* reader : readers_) runner_.stream().wait_for(reader->copied_);
  prepare(round);
}

// The micro-batches of a task: with Segment::whole_batch all shares, each in one.
void PipelineStage::choose_micro_batches(const Segment& segment, std::size_t micro_batch) {
  micro_batches_.clear();
  if (!segment.whole_batch) {
    micro_batches_.push_back(round_->micro_batches[micro_batch]);
    return;
  }
  for (std::size_t share = 0; share < round_->shares.size(); ++share) {
    if (round_->shares[share].size() > 0) micro_batches_.push_back({share, 0, round_->shares[share].size()});
  }
}

Pass PipelineStage::pass_of(const MicroBatch& micro_batch, bool training) {
  const StageRound::Share& share = round_->shares[micro_batch.share];
  const auto begin = static_cast<std::size_t>(micro_batch.begin),
             end = static_cast<std::size_t>(micro_batch.end);
  const auto* rows = reinterpret_cast<const std::uint32_t*>(inputs_.first + inputs_.rows_offset);
  const Program::Inputs inputs{reinterpret_cast<const StepInput*>(inputs_.first), rows + share.fed + begin,
                               nullptr};
  const SampleRange samples{share.samples.begin + begin, share.samples.begin + end};
  Pass pass = task_ == Task::kTrain
                  ? program().training_pass(runner_.stream(), inputs, share.number, samples, joint_)
                  : program().make_pass(runner_.stream(), micro_batch.end - micro_batch.begin, inputs);
  pass.training = training;
  pass.first_row = micro_batch.begin;
  return pass;
}

Pass PipelineStage::whole_pass(std::size_t share, bool training) {
  return pass_of({share, 0, round_->shares[share].size()}, training);
}

Event& PipelineStage::mark(std::size_t segment, std::size_t micro_batch, bool backward) {
  if (marks_.size() <= segment) marks_.resize(segment + 1);
  std::vector<Event>& marks = backward ? marks_[segment].backward : marks_[segment].forward;
  while (marks.size() <= micro_batch) marks.emplace_back();
  return marks[micro_batch];
}

// When op `op` is done with the micro-batch of task `of`, or, for a task on the whole batch, with all
// micro-batches: the event of the last one.
const Event& PipelineStage::mark(const StageSchedule& schedule, std::size_t op, const SegmentTask& of,
                                 bool whole) {
  const std::size_t segment = schedule.segment_of(program_options_.stage.index, op);
  const bool is_whole = schedule.segments()[segment].whole_batch;
  return mark(segment, is_whole ? 0 : whole ? round_->micro_batches.size() - 1 : of.micro_batch, of.backward);
}

void PipelineStage::run(const StageSchedule& schedule, const SegmentTask& task) {
  runner_.select();
  const Segment& segment = schedule.segments()[task.segment];
  choose_micro_batches(segment, task.micro_batch);
  copy_values(schedule, task);
  if (segment.begin == 0 && !task.backward) {
    for (const MicroBatch& micro_batch : micro_batches_)
      program().load(pass_of(micro_batch, task_ == Task::kTrain));
  }
  if (segment.whole_batch && group_ != nullptr)
    join_sums(segment, task.backward ? Phase::kBackward : Phase::kForward);
  for (const MicroBatch& micro_batch : micro_batches_) {
    if (task.backward) {
      backward(segment, micro_batch);
    } else {
      forward(segment, micro_batch);
    }
  }
  runner_.stream().record(mark(task.segment, task.micro_batch, task.backward));
}

void PipelineStage::copy_values(const StageSchedule& schedule, const SegmentTask& task) {
  if (micro_batches_.empty()) return;
  const Segment& segment = schedule.segments()[task.segment];
  for (const Link& link : task.backward ? gradients_ : values_) {
    const std::size_t op = task.backward ? link.here.last_op : link.here.first_op;
    if (op < segment.begin || op >= segment.end) continue;
    runner_.stream().wait_for(link.other->mark(schedule, link.there.first_op, task, segment.whole_batch));
    for (const MicroBatch& micro_batch : micro_batches_) copy(link, micro_batch, task.backward);
    runner_.stream().record(copied_);
  }
}

void PipelineStage::copy(const Link& link, const MicroBatch& micro_batch, bool gradient) {
  const auto count = static_cast<std::size_t>(micro_batch.end - micro_batch.begin);
  const Pass here = pass_of(micro_batch, true), there = link.other->pass_of(micro_batch, true);
  runner_.stream().copy_between(here.data(gradient ? link.here.gradient : link.here.slot), device_,
                                there.data(gradient ? link.there.gradient : link.there.slot),
                                link.other->device_, count * link.here.row_bytes);
}

// Gives the op of the segment what it needs of all shares, on whichever rank.
void PipelineStage::join_sums(const Segment& segment, Phase phase) {
  const CompiledNetwork& network = program().network();
  const Op& op = *network.ops[segment.begin];
  const bool goes_back =
      std::find(network.backward.begin(), network.backward.end(), segment.begin) != network.backward.end();
  const std::size_t bytes = op.sum_bytes(phase);
  if (bytes == 0 || (phase == Phase::kBackward && !goes_back)) return;
  for (std::size_t share = 0; share < round_->shares.size(); ++share)
    program().leave_sums(op, phase, whole_pass(share, true));
  exchange(joint_.sums, bytes);
  op.join_sums(whole_pass(0, true), phase);
}

// Brings all shares of an array, of `bytes` each, to all sets of devices, before later work on the stream.
void PipelineStage::exchange(std::byte* shares, std::size_t bytes) {
  begins_.clear();
  for (const int share : first_shares_) begins_.push_back(static_cast<std::size_t>(share) * bytes);
  if (exchanges_.is_full()) wait();
  exchanges_.start(runner_.stream());
  group_->all_gather(runner_.stream(), shares, begins_);
  exchanges_.stop(runner_.stream());
  if (waits_) wait();
}

void PipelineStage::forward(const Segment& segment, const MicroBatch& micro_batch) {
  const Pass pass = pass_of(micro_batch, task_ == Task::kTrain);
  const auto& ops = program().network().ops;
  for (std::size_t op = segment.begin; op < std::min(segment.end, ops.size()); ++op) ops[op]->forward(pass);
  if (segment.end > ops.size()) finish_forward(micro_batch, pass);
}

// The loss of a micro-batch, and sums over the whole share when all micro-batches are there.
void PipelineStage::finish_forward(const MicroBatch& micro_batch, const Pass& pass) {
  const bool compares = task_ != Task::kPredict;
  Totals* const totals = program().totals_of_share(round_->shares[micro_batch.share].number);
  if (round_->is_whole(micro_batch)) {
    program().run_loss(pass, compares, totals);
    return;
  }
  if (pass.training) program().run_loss(pass, true, unused_totals_.data());
  if (round_->is_last(micro_batch))
    program().run_loss(whole_pass(micro_batch.share, false), compares, totals);
}

void PipelineStage::backward(const Segment& segment, const MicroBatch& micro_batch) {
  const Pass pass = pass_of(micro_batch, true);
  const CompiledNetwork& network = program().network();
  const bool is_whole = round_->is_whole(micro_batch);
  if (is_whole && segment.end > network.ops.size() && network.stack) network.stack->backward_weights(pass);
  for (const std::size_t op : network.backward) {
    if (op < segment.begin || op >= segment.end) continue;
    if (is_whole) {
      network.ops[op]->backward(pass);
    } else {
      network.ops[op]->backward_input(pass);
    }
  }
}

void PipelineStage::finish_round() {
  runner_.select();
  const CompiledNetwork& network = program().network();
  for (std::size_t share = 0; share < round_->shares.size(); ++share) {
    const StageRound::Share& of = round_->shares[share];
    if (of.micro_batches > 1) {
      const Pass whole = whole_pass(share, true);
      if (network.stack) network.stack->backward_weights(whole);
      for (const std::size_t op : network.backward) network.ops[op]->backward_weights(whole);
    }
    program().sum_gradient(runner_.stream(), of.number, of.size() > 0, round_->adds);
  }
}

void PipelineStage::exchange_gradients() {
  if (group_ == nullptr || program().gradient_bytes() == 0) return;
  runner_.select();
  exchange(program().share_gradients(), program().gradient_bytes());
}

void PipelineStage::sum_squares() {
  if (clipped_.empty()) return;
  runner_.select();
  program().optimizer().sum_squares(runner_.stream());
  runner_.stream().record(squares_);
}

void PipelineStage::take_step() {
  runner_.select();
  Stream& stream = runner_.stream();
  if (clipped_.empty()) {
    program().optimizer().step(stream, reinterpret_cast<const StepInput*>(inputs_.first));
    return;
  }
  Optimizer& optimizer = program().optimizer();
  for (PipelineStage* other : clipped_) {
    const Optimizer& from = other->program().optimizer();
    double* to = optimizer.all_squares() + (from.squares() - from.all_squares());
    stream.wait_for(other->squares_);
    stream.copy_between(to, device_, from.squares(), other->device_,
                        static_cast<std::size_t>(from.square_count()) * sizeof(double));
  }
  stream.record(copied_);
  optimizer.update(stream, reinterpret_cast<const StepInput*>(inputs_.first));
}

void PipelineStage::wait() {
  runner_.select();
  if (group_ != nullptr) {
    group_->wait(runner_.stream());
  } else {
    runner_.stream().wait();
  }
}

}  // namespace sweep::cuda
