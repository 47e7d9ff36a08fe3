#include "core/kernels/cuda/pipeline_stage.h"

#include <algorithm>

namespace sweep::cuda {

BatchParts::BatchParts(std::size_t images, std::size_t most, std::size_t unit)
    : images_(static_cast<int>(images)),
      unit_(unit),
      units_((images + unit - 1) / unit),
      count_(std::clamp<std::size_t>(units_, 1, std::max<std::size_t>(most, 1))) {}

int BatchParts::begin(std::size_t part) const {
  return std::min(images_, static_cast<int>(units_ * part / count_ * unit_));
}

PipelineStage::PipelineStage(const Network& network, const ProgramOptions& program, std::size_t batch_size,
                             Placement placement, FedArrays fed)
    : program_options_(program),
      device_(program.device),
      runner_(network, program, batch_size, placement, fed),
      unused_totals_(program.stage.in_parts ? runner_.program().totals().size() : 0, "sums of parts") {
  runner_.stream().clear(unused_totals_.data(), unused_totals_.size() * sizeof(DeviceTotals));
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

void PipelineStage::begin(Task task, const Batch& batch, const StepInput& input, const BatchParts& parts) {
  runner_.select();
  task_ = task;
  parts_ = parts;
  for (std::size_t part = 0; part <= parts.count(); ++part) {
    const bool is_whole = part == parts.count();
    const int images = is_whole ? parts.images() : parts.begin(part + 1) - parts.begin(part);
    if (!prepared_.insert(images).second) continue;
    for (const auto& op : program().network().ops) op->prepare(images);
  }
  Stream& stream = runner_.stream();
  for (const PipelineStage* reader : readers_) stream.wait_for(reader->copied_);
  runner_.feed().add(stream, batch, input);
  inputs_ = runner_.feed().upload(stream);
}

PipelineStage::Rows PipelineStage::rows_of(const Segment& segment, std::size_t part) const {
  if (segment.whole_batch) return {0, parts_.images()};
  return {parts_.begin(part), parts_.begin(part + 1)};
}

Pass PipelineStage::pass_of(const Rows& rows, bool training) {
  const auto* row_numbers = reinterpret_cast<const std::uint32_t*>(inputs_.first + inputs_.rows_offset);
  Pass pass = program().make_pass(
      runner_.stream(), rows.end - rows.begin,
      {reinterpret_cast<const StepInput*>(inputs_.first), row_numbers + rows.begin, nullptr});
  pass.training = training;
  pass.first_image = rows.begin;
  pass.first_row = rows.begin;
  return pass;
}

Event& PipelineStage::mark(std::size_t segment, std::size_t part, bool backward) {
  if (marks_.size() <= segment) marks_.resize(segment + 1);
  std::vector<Event>& marks = backward ? marks_[segment].backward : marks_[segment].forward;
  while (marks.size() <= part) marks.emplace_back();
  return marks[part];
}

// When op `op` is done with the part of task `of`, or, for a task on the whole batch, with all parts, of
// which the last comes last.
const Event& PipelineStage::mark(const StageSchedule& schedule, std::size_t op, const SegmentTask& of,
                                 bool whole) {
  const std::size_t segment = schedule.segment_of(program_options_.stage.index, op);
  const bool is_whole = schedule.segments()[segment].whole_batch;
  return mark(segment, is_whole ? 0 : whole ? parts_.count() - 1 : of.part, of.backward);
}

void PipelineStage::run(const StageSchedule& schedule, const SegmentTask& task) {
  runner_.select();
  copy_values(schedule, task);
  const Segment& segment = schedule.segments()[task.segment];
  if (task.backward) {
    backward(segment, task.part);
  } else {
    forward(segment, task.part);
  }
  runner_.stream().record(mark(task.segment, task.part, task.backward));
}

void PipelineStage::copy_values(const StageSchedule& schedule, const SegmentTask& task) {
  const Segment& segment = schedule.segments()[task.segment];
  for (const Link& link : task.backward ? gradients_ : values_) {
    const std::size_t op = task.backward ? link.here.last_op : link.here.first_op;
    if (op < segment.begin || op >= segment.end) continue;
    runner_.stream().wait_for(link.other->mark(schedule, link.there.first_op, task, segment.whole_batch));
    copy(link, rows_of(segment, task.part), task.backward);
    runner_.stream().record(copied_);
  }
}

void PipelineStage::copy(const Link& link, const Rows& rows, bool gradient) {
  const auto count = static_cast<std::size_t>(rows.end - rows.begin);
  const Pass here = pass_of(rows, true), there = link.other->pass_of(rows, true);
  runner_.stream().copy_between(here.data(gradient ? link.here.gradient : link.here.slot), device_,
                                there.data(gradient ? link.there.gradient : link.there.slot),
                                link.other->device_, count * link.here.row_bytes);
}

void PipelineStage::forward(const Segment& segment, std::size_t part) {
  const Pass pass = pass_of(rows_of(segment, part), task_ == Task::kTrain);
  const auto& ops = program().network().ops;
  if (segment.begin == 0) program().load(pass);
  for (std::size_t op = segment.begin; op < std::min(segment.end, ops.size()); ++op) ops[op]->forward(pass);
  if (segment.end > ops.size()) finish_forward(part, pass);
}

// The loss of a part, and sums over the whole batch when all parts are there.
void PipelineStage::finish_forward(std::size_t part, const Pass& pass) {
  const bool compares = task_ != Task::kPredict, is_last_part = part + 1 == parts_.count();
  if (pass.training && parts_.count() > 1) program().run_loss(pass, true, unused_totals_.data());
  if (!is_last_part) return;
  const bool trains = task_ == Task::kTrain && parts_.count() == 1;
  program().run_loss(pass_of({0, parts_.images()}, trains), compares, program().totals().data());
}

void PipelineStage::backward(const Segment& segment, std::size_t part) {
  const Pass pass = pass_of(rows_of(segment, part), true);
  const CompiledNetwork& network = program().network();
  const bool is_whole = parts_.count() == 1 || segment.whole_batch;
  if (is_whole && segment.end > network.ops.size() && network.head) network.head->backward_weights(pass);
  for (const std::size_t op : network.backward) {
    if (op < segment.begin || op >= segment.end) continue;
    if (is_whole) {
      network.ops[op]->backward(pass);
    } else {
      network.ops[op]->backward_input(pass);
    }
  }
}

void PipelineStage::finish_gradients() {
  runner_.select();
  if (parts_.count() > 1) {
    const Pass whole = pass_of({0, parts_.images()}, true);
    const CompiledNetwork& network = program().network();
    if (network.head) network.head->backward_weights(whole);
    for (const std::size_t op : network.backward) network.ops[op]->backward_weights(whole);
  }
  if (clipped_.empty()) return;
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

}  // namespace sweep::cuda
