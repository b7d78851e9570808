#!/usr/bin/env python3
"""Makes the small checkpoints in tests/data/checkpoints, and what PyTorch computes from them.

    make_module_checkpoints.py RELEASE CHECKOUT OUT

RELEASE is v3.0, v3.1, v5.0 or v7.0, CHECKOUT a folder with that tag of github.com/ultralytics/yolov5, OUT the folder for the
files. Needs PyTorch (1.13 made the committed ones), NumPy and PyYAML; other modules that upstream imports are replaced by
empty stand-ins when they are absent. The models are tiny, with random weights and batch norm statistics, and their yaml
is written here. For each `<name>.pt` there is `<name>.npy`: the Detect output in eval mode for the picture
x[n,c,y,x] = ((7y + 13x + 29c + (y*x) mod 31) mod 256) / 255 of the size in `expected_<release>.json`.
"""
import importlib.abc
import importlib.machinery
import io
import json
import pathlib
import sys
import types
import zipfile
from copy import deepcopy
from unittest import mock

import numpy as np
import torch
import torch.nn as nn
import torch.serialization


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that upstream imports for plots and downloads."""
    names = ('cv2', 'pandas', 'requests', 'PIL', 'IPython', 'tqdm', 'matplotlib', 'seaborn', 'scipy', 'torchvision',
             'psutil', 'thop', 'ultralytics')

    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in self.names:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = mock.MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module):
        pass


def picture(height, width):
    c, y, x = np.meshgrid(np.arange(3), np.arange(height), np.arange(width), indexing='ij')
    values = (7 * y + 13 * x + 29 * c + (y * x) % 31) % 256
    return torch.from_numpy(values.astype(np.float32) / np.float32(255))[None]


def randomise(model, seed):
    """Statistics that no mistake leaves unnoticed."""
    generator = torch.Generator().manual_seed(seed)
    def uniform(tensor, low, high):
        tensor.copy_(torch.rand(tensor.shape, generator=generator) * (high - low) + low)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.BatchNorm2d):
                uniform(module.weight, 0.8, 1.6)
                uniform(module.bias, -0.4, 0.4)
                uniform(module.running_mean, -0.3, 0.3)
                uniform(module.running_var, 0.4, 1.2)
            elif isinstance(module, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
                uniform(module.weight, -1, 1)
                module.weight *= 1.8 / module.weight[0].numel() ** 0.5
                if module.bias is not None:
                    uniform(module.bias, -0.5, 0.5)
            elif isinstance(module, nn.MultiheadAttention):
                uniform(module.in_proj_weight, -0.6, 0.6)
                uniform(module.in_proj_bias, -0.3, 0.3)
            elif type(module).__name__ == 'Sum' and module.weight:
                uniform(module.w, -1, 1)


class Maker:
    def __init__(self, release, out):
        self.release, self.out, self.expected = release, out, {}

    def model(self, layers, anchors, nc, seed, **settings):
        from models.yolo import Model
        cfg = {'nc': nc, 'depth_multiple': 1.0, 'width_multiple': 1.0, 'anchors': anchors, 'backbone': layers[:-1],
               'head': layers[-1:], **settings}
        torch.manual_seed(seed)
        with torch.no_grad():
            model = Model(deepcopy(cfg), ch=3)
        randomise(model, seed)
        model.names = [f'kind {i}' for i in range(nc)]
        return model.eval()

    def add(self, name, model, content, size=(64, 96), save=torch.save, half=False):
        """Saves `content(model)` and what the model computes in fp32 from the weights as they are saved."""
        if half:
            model = model.half()
        save(content(model), self.out / f'{name}.pt')
        model = deepcopy(model).float().eval()
        with torch.no_grad():
            output = model(picture(*size))[0]
        np.save(self.out / f'{name}.npy', output.numpy())
        detect = getattr(model, 'model', model)
        detect = [m for m in detect.modules() if type(m).__name__ == 'Detect'][0]
        fused = deepcopy(model)
        inner = fused.model if type(fused).__name__ in ('AutoShape', 'autoShape') else fused
        inner.info = lambda *a, **k: None
        for p in inner.parameters():
            p.data = p.data.contiguous()  # fuse() views them
        names = getattr(model, 'names', None)
        self.expected[name] = {
            'size': list(size), 'nc': detect.nc, 'strides': detect.stride.tolist(),
            'names': list(names.values()) if isinstance(names, dict) else names,
            'anchors': (detect.anchors * detect.stride.view(-1, 1, 1)).tolist(),
            'params': sum(p.numel() for p in model.parameters()),
            'params_fused': sum(p.numel() for p in inner.fuse().parameters()),
        }

    def finish(self):
        (self.out / f'expected_{self.release}.json').write_text(json.dumps(self.expected, indent=1) + '\n')


def checkpoint(model):
    return {'epoch': -1, 'best_fitness': None, 'ema': None, 'model': model, 'optimizer': None, 'date': '2024-02-03T04:05:06'}


def legacy_save(content, path):
    """The layout before torch 1.6; the classes' source text, which it would hold, is left out."""
    with mock.patch.object(torch.serialization, 'get_source_lines_and_file', lambda obj: (['# left out\n'], 0, 'left_out.py')):
        torch.save(content, path, _use_new_zipfile_serialization=False)


def cuda_save(content, path):
    """As if the storages had been on a GPU."""
    with mock.patch.object(torch.serialization, 'location_tag', lambda storage: 'cuda:0'):
        torch.save(content, path)


def repacked_save(content, path):
    """The archive unpacked and packed again by another tool: deflated, under another folder, with newer torch's records."""
    buffer = io.BytesIO()
    torch.save(content, buffer, pickle_protocol=4)
    source = zipfile.ZipFile(buffer)
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as target:
        target.writestr('some folder/', '')
        for name in source.namelist():
            target.writestr('some folder/inner/' + name.split('/', 1)[1], source.read(name))
        target.writestr('some folder/inner/byteorder', 'little')
        target.writestr('some folder/inner/.data/serialization_id', '1234567890')


def as_views(model):
    """Parameters that are strided views: channels-last kernels, and slices of one flat buffer."""
    flat = torch.zeros(sum(p.numel() for p in model.parameters()) + 7)
    offset = 7
    with torch.no_grad():
        for i, (name, p) in enumerate(list(model.named_parameters())):
            if i % 2 == 0 and p.dim() == 4:
                view = p.data.contiguous(memory_format=torch.channels_last)
            else:
                view = flat[offset:offset + p.numel()].view(p.shape)
                view.copy_(p.data)
                offset += p.numel()
            p.data = view
    return model


P3_P4 = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119]]
P3 = [[10, 13, 16, 30, 33, 23]]


def make_v7(maker):
    from models import common
    from models.experimental import Sum
    from utils import activations

    layers = [[-1, 1, 'Conv', [8, 6, 2, 2]],          # 0
              [-1, 1, 'DWConv', [16, 3, 2]],          # 1
              [-1, 2, 'C3', [16]],                    # 2
              [-1, 1, 'Conv', [16, 3, 2]],            # 3: P3
              [-1, 1, 'C3x', [16]],                   # 4
              [-1, 1, 'Conv', [24, 3, 2]],            # 5: P4
              [-1, 1, 'C3SPP', [24, [3, 5]]],         # 6
              [-1, 1, 'SPPF', [24, 5]],               # 7
              [-1, 1, 'DWConvTranspose2d', [24, 4, 2, 1]],  # 8
              [[-1, 4], 1, 'Concat', [1]],            # 9
              [-1, 1, 'C3', [16, False]],             # 10
              [[10, 7], 1, 'Detect', ['nc', 'anchors']]]
    model = maker.model(layers, P3_P4, 3, 1)
    model.names = {0: '安全帽', 1: 'vest', 2: 'no helmet'}
    maker.add('v7_cross_f16_ema', model, lambda m: {**checkpoint(None), 'ema': m, 'updates': 7}, half=True)
    maker.add('v7_cross_repacked', model.float(), checkpoint, save=repacked_save)

    layers = [[-1, 1, 'Conv', [8, 3, 2]],
              [-1, 1, 'GhostConv', [16, 3, 2]],
              [-1, 1, 'C3Ghost', [16]],
              [-1, 1, 'GhostBottleneck', [16, 3, 2]],
              [-1, 1, 'C3TR', [16]],
              [-1, 1, 'C3TR', [24]],
              [-1, 1, 'CrossConv', [16, 3, 2, 1, 1.0, True]],
              [-1, 2, 'Bottleneck', [16]],
              [-1, 1, 'MixConv2d', [16, [1, 3, 5], 1]],
              [-1, 1, 'SPP', [16, [3, 5]]],
              [[5, 9], 1, 'Detect', ['nc', 'anchors']]]
    model = maker.model(layers, P3_P4, 2, 2)
    maker.add('v7_attention_cuda', model, lambda m: m, save=cuda_save, half=True)

    layers = [[-1, 1, 'nn.ZeroPad2d', [[1, 2, 3, 0]]],           # 0
              [-1, 1, 'Conv', [8, 4, 2, 0]],                     # 1
              [-1, 1, 'nn.BatchNorm2d', []],                     # 2
              [-1, 1, 'nn.MaxPool2d', [3, 2, 1]],                # 3
              [-1, 1, 'Contract', [2]],                          # 4
              [-1, 1, 'Conv', [16, 1, 1]],                       # 5
              [-1, 1, 'Expand', [2]],                            # 6
              [-1, 1, 'nn.Upsample', [None, 2, 'bilinear']],     # 7
              [-1, 1, 'nn.Identity', []],                        # 8
              [-1, 1, 'Conv', [16, 3, 2]],                       # 9
              [-1, 1, 'nn.ConvTranspose2d', [16, 3, 2, 1, 1]],   # 10
              [-1, 1, 'Conv', [16, [1, 3], [1, 2]]],             # 11
              [-1, 1, 'Conv', [16, [5, 1], [4, 1]]],             # 12
              [-1, 1, 'nn.Upsample', [None, 1, 'nearest']],      # 13
              [-1, 1, 'Conv', [16, 3, [1, 2]]],                  # 14
              [-1, 1, 'nn.Identity', []],                        # 15: Sum
              [-1, 1, 'nn.Identity', []],                        # 16: Sum
              [[16], 1, 'Detect', ['nc', 'anchors']]]
    model = maker.model(layers, P3, 2, 3)
    model.model[13].scale_factor = (1.0, 2.0)
    for i, (total, sources) in {15: (Sum(3, weight=True), [14, 14, 12]), 16: (Sum(2), [15, 12])}.items():
        total.i, total.f, total.type, total.np = i, sources, 'models.experimental.Sum', 0
        model.model[i] = total
    model.save = list(range(len(layers)))
    randomise(model, 3)
    maker.add('v7_rearrange', model, checkpoint, size=(64, 64))

    layers = [[-1, 1, 'Conv', [8, 3, 2]], [-1, 1, 'Conv', [8, 3, 1]], [-1, 1, 'Conv', [8, 3, 2]], [-1, 1, 'Conv', [8, 3, 1]],
              [-1, 1, 'Conv', [8, 3, 2]], [-1, 1, 'Conv', [8, 3, 1]], [-1, 1, 'Conv', [8, 3, 1]], [-1, 1, 'Conv', [8, 3, 1]],
              [-1, 1, 'Conv', [8, 3, 1]], [-1, 1, 'Conv', [8, 3, 1]], [-1, 1, 'Conv', [8, 3, 1]], [-1, 1, 'Conv', [8, 3, 1]],
              [[11], 1, 'Detect', ['nc', 'anchors']]]
    model = maker.model(layers, P3, 2, 4)
    for i, act in enumerate([nn.Hardswish(), nn.LeakyReLU(0.2), nn.ReLU6(), nn.Mish(), nn.GELU(), nn.Sigmoid(), nn.ReLU(),
                             activations.SiLU(), activations.Hardswish(), activations.Mish(),
                             activations.MemoryEfficientMish(), nn.Identity()]):
        model.model[i].act = act
    maker.add('v7_activations', model, checkpoint)

    layers = [[-1, 1, 'Conv', [8, 6, 2, 2]], [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'C3', [16]], [-1, 1, 'Conv', [16, 3, 2]],
              [-1, 1, 'BottleneckCSP', [16]], [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'nn.Upsample', [None, 2, 'nearest']],
              [[-1, 4], 1, 'Concat', [1]], [[7, 5], 1, 'Detect', ['nc', 'anchors']]]
    model = maker.model(layers, P3_P4, 4, 5)
    maker.add('v7_plain_legacy', model, checkpoint, save=legacy_save)
    maker.add('v7_plain_legacy_weights', model, lambda m: {'module.' + k: v for k, v in m.state_dict().items()}, save=legacy_save)
    yaml_text = plain_yaml(layers, 80)
    (maker.out / 'v7_plain.yaml').write_text(yaml_text)
    maker.add('v7_plain_views', as_views(deepcopy(model)), checkpoint)
    maker.add('v7_plain_weights', deepcopy(model), lambda m: {'state_dict': m.state_dict(), 'epoch': 3}, half=True)
    fused = deepcopy(model)
    fused.info = lambda *a, **k: None
    fused.fuse()
    del fused.info
    maker.add('v7_plain_fused', fused, checkpoint)
    torch.save({'model': fused.state_dict()}, maker.out / 'v7_plain_fused_weights.pt')
    shaped = common.AutoShape.__new__(common.AutoShape)
    nn.Module.__init__(shaped)
    shaped.model, shaped.stride, shaped.names = deepcopy(model), model.stride, model.names
    torch.save(shaped, maker.out / 'v7_plain_autoshape.pt')

    # As small as a whole model can be: seeds of the fuzz target, and files to damage.
    tiny = maker.model([[-1, 1, 'Conv', [8, 3, 8]], [-1, 1, 'C3', [8]], [[1], 1, 'Detect', ['nc', 'anchors']]], P3, 1, 7)
    maker.add('tiny', tiny, checkpoint, size=(16, 24))
    legacy_save(checkpoint(tiny), maker.out / 'tiny_legacy.pt')
    torch.save(tiny.half().state_dict(), maker.out / 'tiny_weights.pt')

    # Other tasks, which are refused.
    from models.yolo import ClassificationModel, SegmentationModel
    cfg = {'nc': 2, 'depth_multiple': 1.0, 'width_multiple': 1.0, 'anchors': P3, 'backbone': [[-1, 1, 'Conv', [8, 3, 8]]],
           'head': [[[0], 1, 'Segment', ['nc', 'anchors', 4, 8]]]}
    with torch.no_grad():
        torch.save(checkpoint(SegmentationModel(cfg)), maker.out / 'v7_segmentation.pt')
        small = maker.model([[-1, 1, 'Conv', [8, 3, 8]], [[0], 1, 'Detect', ['nc', 'anchors']]], P3, 2, 6)
        torch.save(checkpoint(ClassificationModel(model=small, nc=2, cutoff=1)), maker.out / 'v7_classification.pt')
    torch.jit.save(torch.jit.trace(nn.Conv2d(3, 2, 1), torch.zeros(1, 3, 4, 4)), maker.out / 'torchscript.pt')


def plain_yaml(layers, nc):
    """The same layers as a model yaml, with a class count that the weights overrule."""
    lines = ['# A small YOLOv5 in the form of models/yolov5*.yaml', f'nc: {nc}  # number of classes', 'depth_multiple: 1.0',
             'width_multiple: 1.0', 'anchors:', '  - [10,13, 16,30, 33,23]  # P3/8', '  - [30,61, 62,45, 59,119]  # P4/16',
             'backbone:', '  # [from, number, module, args]']
    row = lambda l: '[{}, {}, {}, {}]'.format(l[0], l[1], l[2], str(l[3]).replace("'nc'", 'nc').replace("'anchors'", 'anchors'))
    lines += ['  [' + row(layers[0]) + ','] + ['   ' + row(l) + ',' for l in layers[1:6]] + ['  ]', 'head:']
    lines += ['  [' + row(layers[6]) + ','] + ['   ' + row(l) + ',' for l in layers[7:]] + ['  ]']
    return '\n'.join(lines) + '\n'


def make_v5(maker):
    layers = [[-1, 1, 'Focus', [8, 3]], [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'C3', [16]], [-1, 1, 'Conv', [16, 3, 2]],
              [-1, 1, 'BottleneckCSP', [16]], [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'SPP', [16, [3, 5]]],
              [-1, 1, 'C3TR', [16, False]],
              [-1, 1, 'nn.Upsample', [None, 2, 'nearest']], [[-1, 4], 1, 'Concat', [1]], [-1, 1, 'C3', [16, False]],
              [[10, 7], 1, 'Detect', ['nc', 'anchors']]]
    maker.add('v5_focus_f16', maker.model(layers, P3_P4, 3, 11), checkpoint, half=True)


def make_v3(maker, hard):
    layers = [[-1, 1, 'Focus', [8, 3]], [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'BottleneckCSP', [16]],
              [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'C3', [16]], [-1, 1, 'MixConv2d', [16, [1, 3], 1]],
              [-1, 1, 'Conv', [16, 3, 2]], [-1, 1, 'SPP', [16, [3, 5]]], [-1, 1, 'BottleneckCSP', [16, False]],
              [-1, 1, 'Conv', [16, 1, 1]], [-1, 1, 'nn.Upsample', [None, 2, 'nearest']], [[-1, 5], 1, 'Concat', [1]],
              [-1, 1, 'BottleneckCSP', [16, False]], [[12, 8], 1, 'Detect', ['nc', 'anchors']]]
    model = maker.model(layers, P3_P4, 2, 21)
    maker.add('v31_hardswish_f16' if hard else 'v30_leaky_f16', model, checkpoint, half=True)


def main():
    release, checkout, out = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    sys.meta_path.append(StandIns())  # last: for modules that are not there
    sys.path.insert(0, checkout)
    maker = Maker(release, out)
    {'v7.0': make_v7, 'v5.0': make_v5, 'v3.0': lambda m: make_v3(m, False), 'v3.1': lambda m: make_v3(m, True)}[release](maker)
    maker.finish()


if __name__ == '__main__':
    main()
