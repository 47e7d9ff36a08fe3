"""All that a server says of the directory that demo_logdir writes, to compare servers with each other."""

import json

from server import ALL_STATUSES

# If there is more than TensorBoard keeps, each loader draws its own samples; the loaders also differ in what they forget when a run
# is resumed (check 43 says how).
SAMPLED = {("values", "long"), ("pictures", "series"), ("resumed", "not_again")}


def everything(board):
    """Answers by request, as far as all servers must agree."""
    found = {}

    def ask(path, **more):
        found[json.dumps([path, more], sort_keys=True)] = answer = board.plugin(path, **more)
        return answer

    def fetch(path, **query):
        key = json.dumps([path, query], sort_keys=True)
        found[key] = board.fetch("/data/plugin/" + path, **query)

    def each(tags):
        return [(run, tag) for run, names in tags.items() for tag in names if (run, tag) not in SAMPLED]

    found["runs"] = sorted(board.get("/data/runs"))
    for plugin, data in (("scalars", "scalars/scalars"), ("histograms", "histograms/histograms"),
                         ("distributions", "distributions/distributions"), ("text", "text/text")):
        for run, tag in each(ask(plugin + "/tags")):
            ask(data, run=run, tag=tag)
    for run, tag in each(tags := ask("images/tags")):
        for sample in range(tags[run][tag]["samples"]):
            entries = board.plugin("images/images", run=run, tag=tag, sample=sample)
            # The address of a picture is the loader's own; what lies there must be the same.
            found[f"images {run} {tag} {sample}"] = [
                ({key: value for key, value in entry.items() if key != "query"},
                 board.fetch("/data/plugin/images/individualImage?" + entry["query"])) for entry in entries]
    ask("custom_scalars/layout")
    ask("hparams/experiment", body={})
    ask("hparams/session_groups", body={"allowedStatuses": ALL_STATUSES, "startIndex": 0, "sliceSize": 100})
    for run, entry in ask("graphs/info").items():
        if entry["run_graph"]:
            fetch("graphs/graph", run=run, conceptual="false", limit_attr_size=1024, large_attrs_key="_too_large_attrs")
        for tag in entry["tags"]:
            fetch("graphs/run_metadata", run=run, tag=tag)
    for run in ask("projector/runs"):
        ask("projector/info", run=run)
    return found


def without_default_name(tag, entry):
    """One loader gives a tag that has no name of its own an empty one, the other the tag."""
    if isinstance(entry, dict) and entry.get("displayName") in ("", tag):
        return {key: value for key, value in entry.items() if key != "displayName"}
    return entry


def alike(one, other):
    """Whether two answers are the same except for what the loaders do differently with any file: a tag's name when it has
    no other, the order of lists of names, and float instead of double precision."""
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(
            alike(without_default_name(key, one[key]), without_default_name(key, other[key])) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        def order(values):
            texts = all(isinstance(value, str) for value in values)
            return sorted(values) if texts else values
        return len(one) == len(other) and all(alike(a, b) for a, b in zip(order(one), order(other)))
    is_time = lambda value: 1e6 <= abs(value) < 1e12  # wall times are equal in double precision
    if isinstance(one, float) and isinstance(other, float) and not (is_time(one) or is_time(other)):
        return abs(one - other) <= 1e-6 * max(abs(one), abs(other))
    return one == other


def differences(one, other):
    """What two results of everything() do not have in common, a line each."""
    lines = [f"only one server answers {key}" for key in sorted(set(one) ^ set(other))]
    for key in sorted(set(one) & set(other)):
        if not alike(one[key], other[key]):
            lines.append(f"{key}: {str(one[key])[:500]} ... and {str(other[key])[:500]}")
    return lines
