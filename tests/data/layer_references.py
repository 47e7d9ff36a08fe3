"""layer_gradients.safetensors: outputs and gradients of small odd-sized networks, computed in double.

For every case NAME the metadata has NAME -> {"input": [channels, height, width],
"layers": [{name, type, arguments}]}, and the file has NAME/input [batch, channels, height, width] (whole numbers
0..255; the network sees them / 255), NAME/labels [batch], NAME/logits [batch, 4], NAME/loss [1], and for
each parameter NAME/PARAMETER and NAME/grad/PARAMETER (of the loss: cross entropy, mean over the batch).
All are exact in F32 or rounded to it from double. The metadata key "__origin__" is no case. Layers of type sequential
and residual have "layers" and "shortcut". If there are running statistics, logits are those in evaluation mode
before the training step whose loss and gradients are given; NAME/BUFFER and NAME/after/BUFFER are the statistics
before and after it.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from torch_networks import build, layer, write_safetensors

HERE = pathlib.Path(__file__).resolve().parent


def conv(name, channels, kernel, **more):
    return layer(name, "conv2d", out_channels=channels, kernel_size=kernel, **more)


def pool(kernel, **more):
    return layer("pool", "max_pool2d", kernel_size=kernel, **more)


def linear(name, features, **more):
    return layer(name, "linear", out_features=features, **more)


END = [layer("flatten", "flatten"), linear("classes", 4)]


def layer_cases():
    """name, input shape, batch, layers. A layer's input gradient is seen through the parameters of one before it."""
    for kernel in (1, 2, 3, 5, [2, 3], [5, 1]):
        for stride in (1, 2, 3):
            for padding in (0, 1, 2):
                smallest = min(kernel) if isinstance(kernel, list) else kernel
                if 2 * padding > smallest + 1:
                    continue
                text = "x".join(map(str, kernel)) if isinstance(kernel, list) else str(kernel)
                # Two convolutions: the second one's input gradient reaches the first one's weights.
                yield (f"conv_k{text}_s{stride}_p{padding}", (2, 8, 7), 5,
                       [conv("first", 3, 2), conv("conv", 5, kernel, stride=stride, padding=padding), *END])
    yield "conv_stride_2x1_padding_0x2", (2, 9, 6), 3, [conv("first", 3, 1), conv("conv", 2, 3, stride=[2, 1], padding=[0, 2]), *END]
    yield "conv_no_bias", (1, 6, 9), 4, [conv("first", 2, 3, bias=False), conv("conv", 3, 3, bias=False), *END]
    yield "conv_to_1x1", (3, 5, 5), 7, [conv("first", 7, 3), conv("conv", 13, 3), *END]
    yield "conv_one_pixel", (1, 1, 1), 2, [conv("conv", 3, 1), *END]
    yield "conv_one_row", (1, 1, 19), 3, [conv("first", 2, [1, 4]), conv("conv", 3, [1, 3], stride=2), *END]
    for inputs in (1, 2, 3, 5, 7, 13):
        for outputs in (1, 2, 3, 5, 7, 13):
            if inputs in (1, 7) or outputs in (1, 13) or inputs == outputs:
                yield (f"conv_channels_{inputs}_to_{outputs}", (1, 6, 5), 3,
                       [conv("first", inputs, 2), conv("conv", outputs, 3), *END])
    for batch in (1, 2, 15, 16, 17, 31, 33):
        yield f"conv_batch_{batch}", (1, 7, 6), batch, [conv("first", 3, 3), layer("relu", "relu"), conv("conv", 2, 2), *END]
        yield f"linear_batch_{batch}", (1, 3, 3), batch, [layer("flatten", "flatten"), linear("first", 7),
                                                          layer("relu", "relu"), linear("second", 5), linear("classes", 4)]
        yield f"pool_batch_{batch}", (1, 7, 6), batch, [conv("first", 3, 2), pool(2), *END]
    for kernel, more in ((2, {}), (3, {}), (2, {"stride": 1}), (3, {"stride": 2}), (2, {"stride": 3}),
                         (3, {"stride": 1, "padding": 1}), (3, {"stride": 2, "padding": 1}), (2, {"padding": 1}),
                         ([2, 3], {}), ([3, 2], {"stride": [1, 2], "padding": [1, 0]}), ([1, 4], {"stride": 1})):
        name = "_".join(["pool", str(kernel)] + [f"{k}_{v}" for k, v in more.items()])
        name = name.replace("[", "").replace("]", "").replace(", ", "x")
        yield name, (2, 9, 8), 3, [conv("first", 3, 2), pool(kernel, **more), *END]
        yield name + "_after_relu", (2, 9, 8), 3, [conv("first", 2, 2), layer("relu", "relu"), pool(kernel, **more), *END]
    yield "pool_before_relu", (1, 9, 8), 3, [conv("first", 3, 2), pool(2), layer("relu", "relu"), *END]
    yield "pool_of_pixels", (1, 9, 8), 3, [pool(2), conv("conv", 3, 2), *END]
    for inputs, outputs in ((1, 1), (1, 5), (3, 7), (17, 1), (13, 33), (33, 17), (65, 3), (100, 31)):
        yield (f"linear_{inputs}_to_{outputs}", (1, 2, 4), 6,
               [layer("flatten", "flatten"), linear("first", inputs), linear("linear", outputs), linear("classes", 4)])
    yield "linear_only", (3, 4, 5), 9, [*END]
    yield "linear_no_bias", (1, 3, 5), 9, [layer("flatten", "flatten"), linear("first", 5, bias=False),
                                           linear("classes", 4, bias=False)]
    yield "relu_of_pixels", (1, 3, 3), 5, [layer("relu", "relu"), *END]
    yield "relu_twice", (1, 3, 3), 5, [layer("flatten", "flatten"), linear("first", 9), layer("relu1", "relu"),
                                       layer("relu2", "relu"), linear("classes", 4)]
    yield "deeplizard_small", (1, 16, 16), 17, [
        conv("conv1", 3, 5), layer("relu1", "relu"), pool(2) | {"name": "pool1"}, conv("conv2", 5, 3),
        layer("relu2", "relu"), pool(2) | {"name": "pool2"}, layer("flatten", "flatten"), linear("fc1", 11),
        layer("relu3", "relu"), linear("classes", 4)]
    yield "three_convolutions_colour", (3, 11, 9), 16, [
        conv("conv1", 5, 3, padding=1), layer("relu1", "relu"), conv("conv2", 7, 3, stride=2, padding=1),
        layer("relu2", "relu"), conv("conv3", 2, [2, 3]), layer("relu3", "relu"), *END]
    for kind, more in (("leaky_relu", {}), ("leaky_relu", {"negative_slope": 0.3}), ("tanh", {}), ("sigmoid", {}), ("gelu", {})):
        name = "_".join([kind] + [str(v) for v in more.values()]).replace(".", "")
        yield name, (2, 6, 5), 17, [conv("first", 3, 2), layer("activation", kind, **more), *END]
        yield name + "_after_linear", (1, 3, 4), 5, [layer("flatten", "flatten"), linear("first", 33), layer("activation", kind, **more),
                                                     linear("classes", 4)]
    for kernel, more in ((2, {}), (3, {"stride": 2, "padding": 1}), ([2, 3], {"stride": [1, 2]}),
                         (3, {"stride": 2, "padding": 1, "count_include_pad": False}), (2, {"stride": 3})):
        name = "_".join(["avg_pool", str(kernel)] + [f"{k}_{v}" for k, v in more.items()])
        name = name.replace("[", "").replace("]", "").replace(", ", "x")
        yield name, (2, 9, 8), 3, [conv("first", 3, 2), layer("pool", "avg_pool2d", kernel_size=kernel, **more), *END]
    for size in (1, 3, [5, 2], 9):
        name = "adaptive_avg_pool_" + str(size).replace("[", "").replace("]", "").replace(", ", "x")
        yield name, (2, 9, 8), 3, [conv("first", 3, 2), layer("pool", "adaptive_avg_pool2d", output_size=size), *END]
    for stride, padding in ((1, 2), (2, 0), (2, 2), (3, 1)):
        yield (f"conv_pool_s{stride}_p{padding}", (2, 15, 13), 17,
               [conv("first", 3, 3), layer("relu1", "relu"), pool(2) | {"name": "pool1"},
                conv("conv", 5, [3, 2], stride=stride, padding=[padding, 1]), layer("relu", "relu"), pool(2), *END])
    for channels in (16, 17, 33):
        yield (f"conv_pool_channels_{channels}", (1, 12, 10), 18,
               [conv("first", channels, 3), layer("relu1", "relu"), conv("conv", 5, 3), layer("relu", "relu"), pool(2), *END])


    def norm(name, **more):
        return layer(name, "batch_norm2d", **more)

    def block(name, layers, shortcut=None):
        return layer(name, "residual") | {"layers": layers} | ({"shortcut": shortcut} if shortcut else {})

    relu = layer("relu", "relu")
    for batch in (2, 15, 16, 17, 33):
        yield (f"batch_norm_batch_{batch}", (2, 6, 5), batch,
               [conv("first", 3, 2), norm("norm"), relu, conv("second", 5, 3), norm("norm2"), *END])
    yield "batch_norm_of_pixels", (2, 6, 5), 17, [norm("norm"), conv("first", 3, 2), *END]
    yield "batch_norm_of_one_pixel", (2, 3, 2), 17, [conv("first", 3, [3, 2]), norm("norm"), *END]
    yield "batch_norm_plain", (2, 6, 5), 17, [norm("norm", affine=False), conv("first", 3, 2), norm("norm2", affine=False), relu, *END]
    yield "batch_norm_eps_momentum", (2, 6, 5), 18, [conv("first", 17, 2), norm("norm", eps=0.1, momentum=0.3), layer("tanh", "tanh"), *END]
    yield "batch_norm_pool", (1, 9, 8), 19, [conv("first", 3, 2), norm("norm"), relu, pool(2), conv("second", 4, 2), relu | {"name": "relu2"},
                                             pool(2) | {"name": "pool2"}, *END]
    yield "residual_identity", (2, 6, 5), 17, [conv("first", 3, 3, padding=1), block("block", [conv("conv", 3, 3, padding=1)]), relu, *END]
    yield "residual_of_pixels", (2, 6, 5), 17, [block("block", [conv("conv", 2, 3, padding=1)]), relu, *END]
    yield "residual_shortcut", (2, 6, 5), 5, [conv("first", 3, 3, padding=1), relu | {"name": "relu0"},
                                              block("block", [conv("conv", 5, 3, stride=2, padding=1), relu, conv("conv2", 5, 3, padding=1)],
                                                    [conv("conv", 5, 1, stride=2)]), *END]
    yield "residual_activations", (1, 4, 3), 6, [layer("flatten", "flatten"), linear("first", 9),
                                                 block("block", [layer("tanh", "tanh")], [layer("sigmoid", "sigmoid")]), linear("classes", 4)]
    yield "residual_twice_itself", (1, 4, 3), 6, [layer("flatten", "flatten"), linear("first", 9),
                                                  block("block", [layer("flat", "flatten")]), relu, linear("classes", 4)]
    yield "residual_nested", (2, 5, 5), 18, [
        conv("first", 4, 3, padding=1),
        block("outer", [block("inner", [conv("conv", 4, 3, padding=1), relu]), conv("conv", 4, 1)]), relu, *END]
    yield "residual_network", (3, 8, 8), 33, [
        conv("stem", 4, 3, padding=1, bias=False), norm("norm"), relu,
        layer("stage1", "sequential") | {"layers": [
            block("block", [conv("conv1", 4, 3, padding=1, bias=False), norm("norm1"), relu, conv("conv2", 4, 3, padding=1, bias=False),
                            norm("norm2")]), relu]},
        layer("stage2", "sequential") | {"layers": [
            block("block", [conv("conv1", 7, 3, stride=2, padding=1, bias=False), norm("norm1"), relu,
                            conv("conv2", 7, 3, padding=1, bias=False), norm("norm2")],
                  [conv("conv", 7, 1, stride=2, bias=False), norm("norm")]), relu]},
        layer("average", "adaptive_avg_pool2d", output_size=1), *END]
    for name, more in (("dilation_2", {"dilation": 2}), ("dilation_2x3_padding", {"dilation": [2, 3], "padding": [1, 3]}),
                       ("dilation_2_stride_2", {"dilation": 2, "stride": 2, "padding": 2}), ("dilation_3_stride_2x3", {"dilation": 3, "stride": [2, 3], "padding": 3}),
                       ("groups_2", {"groups": 2}), ("groups_2_dilation_2", {"groups": 2, "dilation": 2, "padding": 1}),
                       ("groups_2_stride_2_no_bias", {"groups": 2, "stride": 2, "padding": 1, "bias": False})):
        yield f"conv_{name}", (2, 11, 10), 5, [conv("first", 4, 2), conv("conv", 6, 3, **more), *END]
        yield f"conv_pool_{name}", (2, 17, 15), 17, [conv("first", 4, 2), conv("conv", 6, 3, **more), relu, pool(2), *END]
    yield "conv_depthwise", (3, 9, 8), 17, [conv("first", 7, 2), conv("conv", 14, 3, groups=7, padding=1), relu, conv("point", 5, 1), *END]
    yield "conv_dilation_of_pixels", (1, 12, 12), 17, [conv("conv", 5, 3, dilation=2), relu, pool(2), *END]
    # Wide enough for other algorithms than sums of products.
    yield "conv_wide", (1, 7, 6), 3, [conv("first", 17, 2, padding=1), conv("conv", 9, 3, padding=1), *END]
    yield "conv_wide_twice", (1, 6, 9), 17, [conv("first", 16, 3, padding=1), relu, conv("conv", 16, 3, padding=1), relu | {"name": "relu2"},
                                             conv("conv2", 8, 3, bias=False), *END]
    yield "conv_wide_groups", (1, 8, 7), 5, [conv("first", 32, 2), conv("conv", 18, 3, groups=2, padding=1), *END]
    yield "conv_wide_stride_2", (1, 16, 15), 3, [conv("first", 32, 1), conv("conv", 9, 3, stride=2, padding=1), *END]
    yield "conv_pool_kernel_5", (2, 14, 13), 18, [conv("first", 3, 2), relu, conv("conv", 7, 5), relu | {"name": "relu2"}, pool(2), *END]
    yield "conv_pool_kernel_4x3", (2, 14, 13), 18, [conv("first", 4, 2), relu, conv("conv", 7, [4, 3], padding=1), relu | {"name": "relu2"},
                                                    pool(2), *END]
    yield "silu", (2, 6, 5), 17, [conv("first", 3, 2), layer("activation", "silu"), *END]
    yield "silu_after_linear", (1, 3, 4), 5, [layer("flatten", "flatten"), linear("first", 33), layer("activation", "silu"),
                                              linear("classes", 4)]


def smallest_margin(network, x):
    """How near a relu is to its kink, or a max pool to another maximum: float arithmetic must decide as double does."""
    margin = 1.0

    def look(module, inputs):
        nonlocal margin
        x = inputs[0]
        if isinstance(module, (nn.ReLU, nn.LeakyReLU)):
            # Exact zeros (pixels, or a relu's output) are safe: every precision computes them exactly.
            nonzero = x[x != 0].abs()
            margin = min(margin, nonzero.min().item()) if len(nonzero) else margin
        if isinstance(module, nn.MaxPool2d) and not (x == (x * 255).round() / 255).all():
            k, s, p = (v if isinstance(v, tuple) else (v, v) for v in (module.kernel_size, module.stride, module.padding))
            padded = functional.pad(x, (p[1], p[1], p[0], p[0]), value=-1e9)
            windows = padded.unfold(2, k[0], s[0]).unfold(3, k[1], s[1]).flatten(-2)
            top = windows.topk(2, -1).values
            gap = (top[..., 0] - top[..., 1])[top[..., 0] != 0]  # equal zeros after a relu pass no gradient
            margin = min(margin, gap.min().item()) if len(gap) else margin

    hooks = [module.register_forward_pre_hook(look) for module in network.modules()]
    network(x)
    for hook in hooks:
        hook.remove()
    return margin


def make_layers():
    tensors, metadata = {}, {}
    for index, (name, shape, batch, layers) in enumerate(layer_cases()):
        for attempt in range(1000):
            torch.manual_seed(1000 * index + attempt)
            network = build(layers, shape).double()
            # float32's nearest values, so that both precisions start from the same weights.
            network.load_state_dict({k: torch.randn_like(v).mul(1 / np.sqrt(max(1, v[0].numel()))).float().double()
                                     for k, v in network.state_dict().items() if "running" not in k and "tracked" not in k},
                                    strict=False)
            state = {k: v.clone() for k, v in network.state_dict().items()}
            for k, v in state.items():
                if "running" in k:
                    state[k] = (torch.rand_like(v) + 0.5).float().double()
            pixels = torch.randint(0, 256, (batch, *shape)).double()
            labels = torch.randint(0, 4, (batch,))
            if smallest_margin(network, pixels / 255) > 2e-6:
                break
        else:
            sys.exit(f"{name}: no seed keeps clear of kinks")
        network.load_state_dict(state)
        with torch.no_grad():
            logits = network.eval()(pixels / 255)
        loss = functional.cross_entropy(network.train()(pixels / 255), labels)
        loss.backward()
        if name in metadata:
            sys.exit(f"{name} is there twice")
        metadata[name] = json.dumps({"input": list(shape), "layers": layers})
        tensors |= {f"{name}/input": pixels, f"{name}/labels": labels, f"{name}/logits": logits,
                    f"{name}/loss": loss.reshape(1)}
        for key, buffer in network.named_buffers():
            if "running" in key:
                tensors |= {f"{name}/{key}": state[key], f"{name}/after/{key}": buffer}
        for key, parameter in network.named_parameters():
            tensors[f"{name}/{key}"] = parameter
            tensors[f"{name}/grad/{key}"] = parameter.grad
    metadata["__origin__"] = f"tests/data/make_references.py, torch {torch.__version__}, in double"
    write_safetensors(HERE / "layer_gradients.safetensors", tensors, metadata)
    print(len(metadata) - 1, "cases,", (HERE / "layer_gradients.safetensors").stat().st_size, "bytes")
