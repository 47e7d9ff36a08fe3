"""What one step took, node by node, as TensorBoard serves it for the colours of the Graphs tab."""

from server import parse_message


def parse_run_metadata(text):
    """Nodes of a RunMetadata in text form: a list of {"name", "device", "micros", "bytes", "shapes"}."""
    (stats,) = parse_message(text)["step_stats"]
    return [{"name": node["node_name"][0], "device": device["device"][0],
             "micros": int(node.get("all_end_rel_micros", [0])[0]),
             "bytes": sum(int(memory.get("total_bytes", [0])[0]) for memory in node.get("memory", [])),
             "shapes": [[int(dim["size"][0]) for dim in shape.get("dim", [])] for output in node.get("output", [])
                        for description in output["tensor_description"] for shape in description["shape"]]}
            for device in stats["dev_stats"] for node in device["node_stats"]]


def check_run_metadata(measured, graph, samples):
    """What would be coloured wrongly, as a list of sentences. `graph` is of TensorBoard.graph(), `measured` of
    parse_run_metadata; `samples` is the size of the batch in the step."""
    problems = []
    devices = {node["name"]: node["device"] for node in graph}
    ops = {node["name"]: node["op"] for node in graph}
    names = [node["name"] for node in measured]
    if len(set(names)) != len(names):
        problems.append("the profile has two entries for one node")
    for node in measured:
        name = node["name"]
        if name not in devices:
            problems.append(f"the profile has {name}, which is no node of the graph")
        elif node["device"] != devices[name]:
            problems.append(f"the profile has {name} on {node['device']}, the graph on {devices[name]}")
        if not node["shapes"]:
            problems.append(f"the profile has no shape of {name}'s output, so that the page fails")
        is_operation = ops.get(name) not in ("Parameter", "Buffer", "CrossEntropyLoss", "MSELoss")
        if node["micros"] <= 0 and node["bytes"] <= 0:
            problems.append(f"the profile has neither time nor memory for {name}, which is drawn as unused")
        elif node["micros"] <= 0 and is_operation and ops.get(name) != "Input":
            problems.append(f"the profile has no time for {name}")
        for shape in node["shapes"] if is_operation else []:
            if not shape or shape[0] != samples or min(shape) < 1:
                problems.append(f"the profile gives {name}'s output the shape {shape}, not one of {samples} samples")
    for missing in sorted(set(devices) - set(names)):
        problems.append(f"the profile has nothing of {missing}")
    return problems
