"""What one step took, node by node, as TensorBoard serves it for the colours of the Graphs tab. Standard library only."""

import re


def parse_run_metadata(text):
    """Nodes of a RunMetadata in text form: a list of {"name", "device", "micros", "bytes", "shapes"}."""
    nodes, path, device = [], [], ""
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            path.append(line[:-1].strip())
            if path[-1] == "node_stats":
                nodes.append({"name": "", "device": device, "micros": 0, "bytes": 0, "shapes": []})
            elif path[-1] == "shape":
                nodes[-1]["shapes"].append([])
            continue
        if line == "}":
            path.pop()
            continue
        found = re.match(r"(\w+): (.*)$", line)
        if not found:
            continue
        key, value = found.groups()
        where = path[-1] if path else ""
        if (where, key) == ("dev_stats", "device"):
            device = value.strip('"')
        elif (where, key) == ("node_stats", "node_name"):
            nodes[-1]["name"] = value.strip('"')
        elif (where, key) == ("node_stats", "all_end_rel_micros"):
            nodes[-1]["micros"] = int(value)
        elif (where, key) == ("memory", "total_bytes"):
            nodes[-1]["bytes"] = int(value)
        elif (where, key) == ("dim", "size"):
            nodes[-1]["shapes"][-1].append(int(value))
    return nodes


def check_run_metadata(measured, graph, samples):
    """What would be coloured wrongly, as a list of sentences. `graph` is of server.parse_graph, `measured` of
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
