"""carry_options.py MODEL FOLDER: copies of a model that carry options, good and bad, by name."""
import json
import os
import sys

import onnx

model, folder = sys.argv[1:3]
os.makedirs(folder, exist_ok=True)


def save(name, text):
    proto = onnx.load(model)
    onnx.helper.set_model_props(proto, {"dsopt.options": text})
    onnx.save(proto, os.path.join(folder, name + ".onnx"))


save("good", json.dumps({"lr": 0.25, "optimizer": "sgd", "lr-scale": ["net.0.*=0.5"], "decay-scale": ["net.0.bias=0"],
                         "batchnorm": "model"}))
save("unknown", json.dumps({"learning": 1}))
save("command", json.dumps({"save-weights": "elsewhere"}))
save("value", json.dumps({"optimizer": "lion2"}))
save("object", json.dumps({"lr": {"a": 1}}))
save("list", json.dumps(["lr"]))
save("json", "{")
save("scale", json.dumps({"lr-scale": ["[w=1"]}))
save("freeze", json.dumps({"freeze": ["nothing"]}))
save("glob", json.dumps({"padding-index": ["nothing=1"]}))
