# ruff: noqa: E501  (tables: a row is a line)
"""Every fault a recipe can have: one row each, with the place, what is expected, and the way out."""

import math

import pytest

QUOTAS = "stages.short.quotas"
WEIGHTS = "stages.short.weights"
SLICING = "stages.short.slicing"
PACKING = "stages.short.packing"

# change of the small recipe · place of the problem · words of expected · words of the fix
FAULTS = [
    # seed
    ({"seed": -1}, "seed", "0..2**63-1", "use 0"),
    ({"seed": "0100"}, "seed", "whole number", "write 100"),
    ({"max_epochs": "50%"}, "max_epochs", "whole number", "no share of anything"),
    ({"sink": 5}, "sink", "a mapping", "sink: parquet"),
    ({"stages.short.slicing.duplicates": "0.8"}, "stages.short.slicing.duplicates", "percent", "write 80%"),
    ({"stages.short.slicing.density": 50}, "stages.short.slicing.density", "0..1", "such as 0.5 for 50 %"),
    ({"stages.short.slicing.overlap_labels": "no"}, "stages.short.slicing.overlap_labels", "true", "true or"),
    ({"seed": 2**63}, "seed", "0..2**63-1", "use 0"),
    ({"seed": 1.5}, "seed", "whole number", "1.5"),
    ({"seed": True}, "seed", "whole number", "not an amount"),
    ({"seed": None}, "seed", "whole number", "not an amount"),
    ({"seed": "x"}, "seed", "whole number", "write it like 1234"),
    # full-width signs, as East Asian keyboards give
    ({QUOTAS: {"web": "61.6\uff05", "code": "rest"}}, f"{QUOTAS}.web", "percent text", "\uff05 is full-width: write 61.6%"),
    ({QUOTAS: {"web": "\uff16\uff11%", "code": "rest"}}, f"{QUOTAS}.web", "percent text", "\uff16 \uff11 is full-width: write 61%"),
    ({"seed": "\uff17"}, "seed", "whole number", "\uff17 is full-width: write 7"),
    ({QUOTAS: None, WEIGHTS: {"web": "\uff13", "code": 1}}, f"{WEIGHTS}.web", "a number", "write 3"),
    # names that no folder may have
    *(({"name": name}, "name", "a plain name", "choose another") for name in ("", "..", "a/b", "-m", ".a", " a", "a\n", "n" * 201)),
    # unknown keys
    ({"sed": 1}, "sed", "one of count", "did you mean 'seed'?"),
    ({"stages.short.quotta": {"web": "1%"}}, "stages.short.quotta", "quotas", "did you mean 'quotas'?"),
    ({"stages.short.slicing.strid": 3}, f"{SLICING}.strid", "stride", "did you mean 'stride'?"),
    ({"stages.short.packing.metod": "concat"}, f"{PACKING}.metod", "method", "did you mean 'method'?"),
    ({"stages.short.batch.sequence": 3}, "stages.short.batch.sequence", "sequences", "'sequences'?"),
    ({"pools.web.pat": "x"}, "pools.web.pat", "path", "did you mean 'path'?"),
    ({"pools.web.quota": "5%"}, "pools.web.quota", "one of block_units", "stages.NAME.quotas"),
    ({"model.max_position": 3}, "model.max_position", "max_positions", "did you mean 'max_positions'?"),
    ({"stages.short.name": "x"}, "stages.short.name", "a key of a stage", "remove it"),
    # options of later versions
    # views
    ({"stages.short.slicing.oversize": "route"}, f"{SLICING}.oversize", "split, truncate or drop in a stage", "max_tokens: 4096"),
    ({"pools.web.of": "code"}, "pools.web.path", "of without path", "that of pool code"),
    ({"pools.long": {"of": "wep"}}, "pools.long.of", "a pool of the recipe", "did you mean 'web'?"),
    ({"pools.long": {"of": "long"}}, "pools.long.of", "another pool: ", "write path: FOLDER"),
    ({"pools.long": {"of": "web"}, "pools.more": {"of": "long"}}, "pools.more.of", "a pool with a path", "write of: web"),
    ({"pools.long": {"of": 3}}, "pools.long.of", "text", "in quotes"),
    ({"pools.long": {"of": "web", "min_token": 3}}, "pools.long.min_token", "min_tokens", "did you mean 'min_tokens'?"),
    ({"pools.long": {"of": "web", "min_tokens": 0}}, "pools.long.min_tokens", "1 or more", "use 1 or more"),
    ({"pools.long": {"of": "web", "min_tokens": "8Ki", "max_tokens": 8191}}, "pools.long.max_tokens", "8192 or more", "lower min_tokens"),
    ({"pools.long": {"of": "web", "by": "groups", "min_tokens": 1}}, "pools.long.by", "one of document, group, needs", "did you mean 'group'?"),
    ({"pools.long": {"of": "web", "by": "group"}}, "pools.long.by", "beside where", "add min_tokens"),
    ({"pools.long": {"of": "web", "by": "needs", "where": {"a": 1}}}, "pools.long.by", "beside min_tokens", "by: document"),
    ({"pools.web.where": "en"}, "pools.web.where", "a mapping of columns", "language: en"),
    ({"pools.web.where": {"quality": {"mn": 0.5}}}, "pools.web.where.quality.mn", "one of min, max, not", "did you mean 'min'?"),
    ({"pools.web.where": {"quality": {"min": 0.5, "max": "0.25"}}}, "pools.web.where.quality.max", "0.5 or more", "lower min"),
    ({"pools.web.where": {"quality": {"min": 0.5, "max": "high"}}}, "pools.web.where.quality.max", "a number", "alike"),
    ({"pools.web.where": {"source": {"not": "a", "min": 1}}}, "pools.web.where.source.not", "not alone", "one of them"),
    ({"pools.web.where": {"source": []}}, "pools.web.where.source", "at least one value", "name a value"),
    ({"pools.web.where": {"source": [{"not": 1}]}}, "pools.web.where.source", "a value, a list", "as the documents have it"),
    ({"pools.web.slicing": {"oversize": "route"}}, "pools.web.slicing.oversize", "max_tokens", "web_long: {of: web, min_tokens: 513}"),
    # token files made elsewhere
    ({"pools.web.dtype": "uint_16"}, "pools.web.dtype", "one of uint8", "did you mean 'uint16'?"),
    ({"pools.web.documents": "eod", "pools.web.eos": 0}, "pools.web.documents", "one of eos, bos, row, file", "did you mean 'eos'?"),
    ({"pools.web.documents": "eos"}, "pools.web.documents", "the id of eos", "write eos: ID"),
    ({"pools.web.documents": "row", "pools.web.boundaries": ".lens"}, "pools.web.documents", "documents or boundaries", "leave one out"),
    ({"pools.web": {"stock": "1B", "dtype": "uint16"}}, "pools.web.dtype", "dtype beside a path", "add the path"),
    ({"pools.web.empty": "drop"}, "pools.web.empty", "one of error, skip", "use one of these"),
    ({"pools.web.colum": "input_ids"}, "pools.web.colum", "column", "did you mean 'column'?"),
    ({"pools.long": {"of": "web", "dtype": "uint16"}}, "pools.long.dtype", "of without dtype", "that of pool web"),
    # packing
    ({"stages.short.packing.attention": "groups"}, f"{PACKING}.attention", "one of piece, group, sequence", "did you mean 'group'?"),
    ({"stages.short.packing.eos_keep": 0.5}, f"{PACKING}.eos_keep", "percent text, 0%..100%", "50%"),
    ({"stages.short.packing.eos_kep": "5%"}, f"{PACKING}.eos_kep", "eos_keep", "did you mean 'eos_keep'?"),
    ({"stages.short.packing": {"method": "concat", "shuffle_fit": True}}, f"{PACKING}.shuffle_fit", "false with packing concat", "best_fit"),
    ({"stages.short.packing.eos_keep": "50%", "stages.short.slicing.specials": "window"}, f"{PACKING}.eos_keep", "100%: marks stand round every window", "specials: document"),
    # slicing
    ({"stages.short.slicing.align": "paragraphs"}, f"{SLICING}.align", "one of none, section, paragraph", "'paragraph'?"),
    ({"stages.short.slicing.align": 4}, f"{SLICING}.align", "one of none, section", "use one of these"),
    ({"stages.short.slicing": {"align": "word", "stride": 8, "align_within": 8}}, f"{SLICING}.align_within", "0..7", "lower align_within to 7"),
    ({"stages.short.slicing.offset": "randon"}, f"{SLICING}.offset", "one of 0, random", "did you mean 'random'?"),
    ({"stages.short.slicing.offset": 3}, f"{SLICING}.offset", "one of 0, random", "use one of these"),
    ({"stages.short.slicing.density": 0.5}, f"{SLICING}.density", "1, or a mapping of regions", "write {head: 1, middle: 0.5, tail: 1}"),
    ({"stages.short.slicing.density": {"midle": 0.5}}, f"{SLICING}.density.midle", "one of head, middle, tail", "did you mean 'middle'?"),
    ({"stages.short.slicing.density": {"middle": 2}}, f"{SLICING}.density.middle", "0..1", "at most 1"),
    ({"stages.short.slicing.density": {"middle": "50%"}}, f"{SLICING}.density.middle", "a number, 0..1", "like 0.5"),
    ({"stages.short.slicing.density": {}}, f"{SLICING}.density", "some of head, middle, tail", "write {middle: 0.5}"),
    ({"stages.short.slicing.duplicates": "dorp"}, f"{SLICING}.duplicates", "one of keep, drop, or percent text", "did you mean 'drop'?"),
    ({"stages.short.slicing.duplicates": "1/0"}, f"{SLICING}.duplicates", "one of keep, drop, or percent text", "or 80%"),
    ({"stages.short.slicing.duplicates": 0.8}, f"{SLICING}.duplicates", "one of keep, drop, or percent text", "80%"),
    ({"stages.short.slicing.duplicates": "0%"}, f"{SLICING}.duplicates", "above 0% and up to 100%", "or keep"),
    ({"stages.short.slicing.duplicates": "101%"}, f"{SLICING}.duplicates", "above 0% and up to 100%", "drop for 100%"),
    ({"pools.web.slicing": {"duplicate": "drop"}}, "pools.web.slicing.duplicate", "duplicates", "did you mean 'duplicates'?"),
    ({"stages.short.packing": "concat", "stages.short.slicing.duplicates": "80%"}, f"{SLICING}.duplicates", "keep with packing concat", "use keep"),
    ({"stages.short.slicing.stride": {"head": 0}}, f"{SLICING}.stride.head", "1 or more", "use 1 or more"),
    ({"stages.short.slicing": {"window": 8, "stride": {"tail": 9}}}, f"{SLICING}.stride.tail", "1..8", "lower the stride to 8"),
    ({"stages.two": {"like": "short", "slicing": {"specials": "window"}}}, "stages.two.slicing.specials", "document, as before", "for every stage"),
    ({"stages.short.slicing.specials": "windows"}, f"{SLICING}.specials", "one of document, window", "did you mean 'window'?"),
    ({"stages.short.packing": "concat", "stages.short.slicing.align": "word"}, f"{SLICING}.align", "none with packing concat", "use none"),
    ({"stages.short.packing": "concat", "stages.short.slicing.offset": "random"}, f"{SLICING}.offset", "0 with", "use 0"),
    ({"stages.short.packing": "concat", "stages.short.slicing.stride": {"head": 4}}, f"{SLICING}.stride", "one number", "best_fit"),
    ({"stages.short.packing": "concat", "stages.short.slicing.density": {"middle": 0.5}}, f"{SLICING}.density", "1 with", "best_fit"),
    ({"stages.short.packing": "concat", "stages.short.slicing.specials": "window"}, f"{SLICING}.specials", "document with", "best_fit"),
    # values of the wrong kind
    ({"pools.web": None}, "pools.web", "mapping", "{path: FOLDER}"),
    ({"pools.web": "pools/web"}, "pools.web", "mapping", "{path: FOLDER}"),
    ({"pools.web.path": 3}, "pools.web.path", "text", "quotes"),
    ({"pools": []}, "pools", "mapping", "pools: {web"),
    ({"stages": []}, "stages", "mapping", "stages: {main"),
    ({"stages.short": None}, "stages.short", "mapping", "tokens: 1B"),
    ({"pools": {}}, "pools", "at least one", "add one"),
    ({"stages": {}}, "stages", "at least one", "add one"),
    ({"count": "tokens"}, "count", "body, fresh, labels, positions", "use one of these"),
    ({"on_exhausted": "redistribut"}, "on_exhausted", "redistribute", "did you mean 'redistribute'?"),
    ({"labels": "shift"}, "labels", "shifted, inputs", "did you mean 'shifted'?"),
    ({"max_epochs": 0}, "max_epochs", "1 or more", "use 1 or more"),
    ({"stages.short.slicing.overlap_labels": "yes"}, f"{SLICING}.overlap_labels", "true or false", "write"),
    ({"stages.short.slicing.overlap_labels": 1}, f"{SLICING}.overlap_labels", "true or false", "write"),
    # shares that could not be written back
    ({QUOTAS: None, WEIGHTS: {"web": "1e-300", "code": 3}}, f"{WEIGHTS}.web", "at most 10**30", "proportion"),
    ({QUOTAS: None, WEIGHTS: {"web": "1e31", "code": 3}}, f"{WEIGHTS}.web", "at most 10**30", "proportion"),
    ({QUOTAS: {"web": f"0.{'0' * 70}1%", "code": "rest"}}, f"{QUOTAS}.web", "at most 60 characters", "fewer"),
    ({QUOTAS: {"web": "1e-300", "code": "rest"}}, f"{QUOTAS}.web", "percent text", "percent sign"),
    ({"groups.g": {"pools": ["web"], "within": {"temperature": "1e-300"}}}, "groups.g.within.temperature", "0..1", "digits"),
    ({"stages.long": {"tokens": 4096, "context": 512, "quotas": {"web": "100%"}}}, "stages.long.batch", "one of sequences, tokens, ramp", "{sequences: 512}"),
    ({"stages.short.context": "256KB"}, "stages.short.context", "whole number", "write 256k"),
    # what no memory holds
    ({"stages.short.context": "1e12"}, "stages.short.context", "1..16777216", "allocated whole"),
    ({"stages.short.batch": {"sequences": "1B"}}, "stages.short.batch", "at most 137438953472", "8 bytes"),
    ({"stages.short.batch": {"ramp": {0: 1, "1k": "1B"}}}, "stages.short.batch", "at most 137438953472", "8 bytes"),
    # pools
    ({"pools.web": {}}, "pools.web.path", "a path, or a stock", "{path: FOLDER}"),
    ({"pools.web.stock": "1.5"}, "pools.web.stock", "whole number", "10B"),
    ({"pools.web.max_epochs": 0}, "pools.web.max_epochs", "1 or more", "use 1 or more"),
    # lengths
    ({"stages.short.steps": 5}, "stages.short.steps", "exactly one of tokens, steps, until", "keep one"),
    ({"stages.short.tokens": None}, "stages.short", "exactly one of tokens, steps, until", "tokens: 1B"),
    ({"stages.short.tokens": 0}, "stages.short.tokens", "1 or more", "use 1 or more"),
    ({"stages.short.tokens": "10G"}, "stages.short.tokens", "whole number", "did you mean 'B', a billion"),
    # context and batch
    ({"stages.short.context": None}, "stages.short.context", "whole number", "not an amount"),
    ({"model": {"max_positions": 256}}, "stages.short.context", "1..256", "model.max_positions=512"),
    ({"stages.short.batch": 8}, "stages.short.batch", "one of sequences, tokens, ramp", "{sequences: 8}"),
    ({"stages.short.batch": {}}, "stages.short.batch", "exactly one of sequences", "{sequences: 8}"),
    ({"stages.short.batch.tokens": 4096}, "stages.short.batch.tokens", "exactly one", "keep one"),
    ({"stages.short.batch": {"tokens": 1000}}, "stages.short.batch.tokens", "whole number of sequences of 512", "write 512 (1 sequences) or 1024 (2"),
    ({"stages.short.batch": {"tokens": 100}}, "stages.short.batch.tokens", "whole number of sequences", "write 512"),
    ({"stages.short.batch": {"ramp": {}}}, "stages.short.batch.ramp", "positions of the run", "{0: 256"),
    ({"stages.short.batch": {"ramp": {"5k": 8}}}, "stages.short.batch.ramp", "0 as the first", "{0: 256"),
    ({"stages.short.batch": {"ramp": {"0": 8, "5k": 4, "5_000": 2}}}, "stages.short.batch.ramp.5_000", "after 5000", "rising"),
    ({"stages.short.batch": {"ramp": {"0": 0}}}, "stages.short.batch.ramp.0", "1 sequence or more", "at least 1"),
    ({"stages.short.batch": {"ramp": {"0": 8, "soon": 4}}}, "stages.short.batch.ramp.soon", "a position", "100B: 512"),
    # chunk
    ({"stages.short.chunk": 4095}, "stages.short.chunk", "4096 or more", "raise the chunk to 4096"),
    ({"stages.short.chunk": "6k", "stages.short.batch": {"ramp": {"0": 8, "100k": 16}}}, "stages.short.chunk", "8192 or more", "raise"),
    # slicing: W01 a stride above the window would skip tokens
    ({"stages.short.slicing": {"window": 4, "stride": 5}}, f"{SLICING}.stride", "1..4 (the window)", "lower the stride to 4"),
    ({"stages.short.slicing": {"window": 513}}, f"{SLICING}.window", "1..512 (the context)", "lower the window to 512"),
    ({"stages.short.slicing": {"window": 8, "min_tail": 9}}, f"{SLICING}.min_tail", "0..8", "lower min_tail"),
    ({"stages.short.slicing": {"stride": 0}}, f"{SLICING}.stride", "1 or more", "use 1 or more"),
    ({"stages.short.slicing": {"tail": "kep"}}, f"{SLICING}.tail", "keep, backfill, drop, pad", "did you mean 'keep'?"),
    ({"pools.web.slicing": {"window": 1024}}, "pools.web.slicing.window", "(the context), in stage short", "lower"),
    ({"pools.web.slicing": {"window": 8}, "stages.short.slicing": {"stride": 9}}, "pools.web.slicing.stride", "in stage short", "lower"),
    # packing
    ({"stages.short.packing": "bestfit"}, f"{PACKING}.method", "best_fit, concat, none", "did you mean 'best_fit'?"),
    ({"stages.short.packing": "concat", "stages.short.slicing.tail": "backfill"}, f"{SLICING}.tail", "keep or drop", "best_fit"),
    ({"stages.short.packing": "concat", "stages.short.slicing.window": 100}, f"{SLICING}.window", "512", "leave the window out"),
    ({"stages.short.packing": "concat", "stages.short.slicing.oversize": "drop"}, f"{SLICING}.oversize", "split", "use split"),
    # shares: percent
    ({"stages.short.quotas": None}, "stages.short", "exactly one of quotas, weights", "quotas: {pool: 100%}"),
    ({WEIGHTS: {"web": 1, "code": 1}}, "stages.short.weights", "exactly one of quotas", "keep one of quotas, weights"),
    ({f"{QUOTAS}.web": 1}, f"{QUOTAS}.web", "percent text", "write 1% (or 100% if it is a fraction)"),
    ({f"{QUOTAS}.web": 1.0}, f"{QUOTAS}.web", "percent text", "'weights'"),
    ({f"{QUOTAS}.web": 0}, f"{QUOTAS}.web", "percent text", "write 0%"),
    ({f"{QUOTAS}.web": "0.5"}, f"{QUOTAS}.web", "percent text", "write 0.5% (or 50%"),
    ({f"{QUOTAS}.web": "a lot"}, f"{QUOTAS}.web", "percent text", "percent sign"),
    ({f"{QUOTAS}.web": math.nan}, f"{QUOTAS}.web", "percent text", "percent sign"),
    ({f"{QUOTAS}.web": -0.5}, f"{QUOTAS}.web", "percent text", "cannot be negative"),
    ({QUOTAS: {"web": "90%", "code": "90%"}}, QUOTAS, "exactly 100%", "lower a share by 80%"),
    ({QUOTAS: {"web": "33.3%", "code": "66.6%"}}, QUOTAS, "exactly 100%", "raise a share by 0.1%"),
    ({QUOTAS: {"web": "0%", "code": "0%"}}, QUOTAS, "exactly 100%", "raise a share by 100%"),
    ({QUOTAS: {"web": "rest", "code": "rest"}}, QUOTAS, "rest at most once", "all but one"),
    ({QUOTAS: {"web": "101%", "code": "rest"}}, QUOTAS, "exactly 100%", "lower a share by 1%"),
    ({QUOTAS: {}}, QUOTAS, "exactly 100%", "raise"),
    ({QUOTAS: {"wbe": "61.6%", "code": "rest"}}, f"{QUOTAS}.wbe", "a pool or group of the recipe: web, code", "did you mean 'web'?"),
    ({QUOTAS: {"web": "100%"}}, f"{QUOTAS}.code", "a share for every pool", "write code: 0%"),
    # shares: weights (M05)
    ({QUOTAS: None, WEIGHTS: {"web": 0, "code": 0}}, WEIGHTS, "at least one number above 0", "web, code"),
    ({QUOTAS: None, WEIGHTS: {"web": 1.5, "code": -0.5}}, f"{WEIGHTS}.code", "0 or more", "write 0"),
    ({QUOTAS: None, WEIGHTS: {"web": math.nan, "code": 1}}, f"{WEIGHTS}.web", "0 or more", "plain numbers"),
    ({QUOTAS: None, WEIGHTS: {"web": "nan", "code": 1}}, f"{WEIGHTS}.web", "0 or more", "plain numbers"),
    ({QUOTAS: None, WEIGHTS: {"web": math.inf, "code": 1}}, f"{WEIGHTS}.web", "0 or more", "plain numbers"),
    ({QUOTAS: None, WEIGHTS: {"web": "50%", "code": "50%"}}, f"{WEIGHTS}.web", "0 or more", "'quotas'"),
    ({QUOTAS: None, WEIGHTS: {"web": 1}}, f"{WEIGHTS}.code", "a share for every pool", "write code: 0"),
    # shares: tokens
    ({QUOTAS: None, "stages.short.quotas_tokens": {"web": "600k", "code": "300k"}}, "stages.short.quotas_tokens", "sum to 1000000", "make them sum"),
    ({QUOTAS: None, "stages.short.quotas_tokens": {"web": "50%", "code": 1}}, "stages.short.quotas_tokens.web", "whole number", "not an amount"),
    ({QUOTAS: None, "stages.short.quotas_tokens": {"web": 0, "code": 0}}, "stages.short.quotas_tokens", "above 0", "give one"),
    # groups
    ({"groups.all": ["web", "cod"]}, "groups.all.pools", "pools of the recipe: web, code", "did you mean 'code'?"),
    ({"groups.all": ["web", "web"]}, "groups.all.pools", "each pool once", "remove one web"),
    ({"groups.all": []}, "groups.all.pools", "at least one pool", "name the group's pools"),
    ({"groups.all": "web"}, "groups.all", "mapping", "a list of pools"),
    ({"groups.web": ["web", "code"]}, "groups.web", "a name that no pool has", "rename"),
    ({"groups.all": {"pools": ["web"], "within": "naturl"}}, "groups.all.within", "natural, even", "did you mean 'natural'?"),
    ({"groups.all": {"pools": ["web"], "within": {"temperature": 3.3}}}, "groups.all.within.temperature", "0..1", "write 0.303"),
    ({"groups.all": {"pools": ["web"], "within": {"temperature": "hot"}}}, "groups.all.within.temperature", "0..1", "write 0.3"),
    ({"groups.all": {"pools": ["web", "code"], "within": {"shares": {"web": "60%", "code": "60%"}}}}, "groups.all.within.shares", "exactly 100%", "lower"),
    ({"groups.all": {"pools": ["web", "code"], "within": {"shares": {"web": "100%"}}}}, "groups.all.within.shares.code", "a share for every pool", "code: 0%"),
    ({"groups.all": {"pools": ["web"], "within": {"shares": {"web": 1, "code": 1}}}}, "groups.all.within.shares.code", "a pool of the group: web", "remove code"),
    ({"groups.all": ["web", "code"], QUOTAS: {"all": "50%", "web": "50%"}}, f"{QUOTAS}.web", "each pool under one name", "remove web or all"),
    ({"groups": {"a1": ["web", "code"], "a2": ["code"]}, QUOTAS: {"a1": "50%", "a2": "50%"}}, f"{QUOTAS}.a2", "under one name", "remove a2 or a1"),
    # names
    ({"pools": {"a.b": {"path": "x"}}, QUOTAS: {"a.b": "100%"}}, "pools.a.b", "letters, digits", "a_b"),
    ({"pools": {"a b": {"path": "x"}}, QUOTAS: {"a b": "100%"}}, "pools.a b", "letters, digits", "a_b"),
    ({"pools": {"": {"path": "x"}}, QUOTAS: {"": "100%"}}, "pools.", "letters, digits", "rename"),
    # curriculum, like, every_stage
    ({"curriculum": ["shrt"]}, "curriculum", "stages of the recipe: short", "did you mean 'short'?"),
    ({"curriculum": ["short", "short"]}, "curriculum", "each stage once", "{like: short}"),
    ({"curriculum": "short"}, "curriculum", "a list of stages", "[short]"),
    ({"stages.long": {"like": "short"}, "curriculum": ["short"]}, "curriculum", "every stage: short, long", "~stages.long"),
    ({"stages.long": {"like": "shrt"}}, "stages.long.like", "another stage: short", "did you mean 'short'?"),
    ({"stages.long": {"like": "long"}}, "stages.long.like", "does not come back", "long -> long"),
    ({"stages.a": {"like": "b"}, "stages.b": {"like": "a"}}, "stages.b.like", "does not come back", "a -> b -> a"),
    ({"every_stage": 5}, "every_stage", "a mapping", "context: 4096"),
    ({"every_stage": {"like": "short"}}, "every_stage.like", "all stages share", "remove"),
    ({"every_stage": {"slicing": {"strde": 5}}}, "every_stage.slicing.strde", "stride", "did you mean 'stride'?"),
    ({"stages.long": {"like": "short", "tokens": None, "until": "1M"}}, "stages.long.until", "more than 1003520", "tokens:"),
    # ramps of quotas
    ({"stages.short.quota_ramp": {"over": 5, "steps": 2}}, "stages.short.quota_ramp", "after the first", "remove it here"),
    ({"stages.short.quota_ramp": {}}, "stages.short.quota_ramp.over", "a value", "write over: 200B"),
    ({"stages.long": {"like": "short", "quota_ramp": {"over": "2M", "steps": 2}}}, "stages.long.quota_ramp.over", "1..1000000 (the length", "lower it to at most 1000000"),
    ({"stages.long": {"like": "short", "steps": 2, "quota_ramp": {"over": 8193, "steps": 2}}}, "stages.long.quota_ramp.over", "1..8192 (the length", "make the stage longer"),
    ({"stages.long": {"like": "short", "until": 1_004_000, "quota_ramp": {"over": 481, "steps": 2}}}, "stages.long.quota_ramp.over", "1..480 (the length", "lower"),
    ({"stages.long": {"like": "short", "quota_ramp": {"over": 0, "steps": 2}}}, "stages.long.quota_ramp.over", "1 or more", "use 1 or more"),
    ({"stages.long": {"like": "short", "quota_ramp": {"over": 9, "steps": 0}}}, "stages.long.quota_ramp.steps", "1..10000", "use 1..10000"),
    ({"stages.long": {"like": "short", "quota_ramp": {"over": 9, "steps": "1e6"}}}, "stages.long.quota_ramp.steps", "1..10000", "use 1..10000"),
    ({"stages.long": {"like": "short", "quota_ramp": {"over": 9, "step": 1}}}, "stages.long.quota_ramp.step", "over, steps", "did you mean 'steps'?"),
    ({"stages.long": {"like": "short", "quota_ramp": "200B"}}, "stages.long.quota_ramp", "mapping", "{over: 200B, steps: 64}"),
    ({"every_stage": {"quota_ramp": {"over": 9, "steps": 1}}}, "every_stage.quota_ramp", "all stages share", "move it"),
    # a start from elsewhere
    ({"start": {}}, "start.weights", "a value", "write weights: FOLDER"),
    ({"start": {"weights": " "}}, "start.weights", "not empty", "leave the key out"),
    ({"start": {"weights": "w", "revision": 12345678}}, "start.revision", "text", "in quotes"),
    ({"start": {"weights": "w", "prior": "soon"}}, "start.prior", "whole number", "10B"),
    ({"start": {"weights": "w", "prior": {"web": "1T", "code": -1}}}, "start.prior.code", "whole number", "use 0"),
    ({"start": {"wieghts": "w"}}, "start.wieghts", "weights", "did you mean 'weights'?"),
    # pools that were renamed
    ({"pools.web.renamed_from": "code"}, "pools.web.renamed_from", "no pool of the recipe has", "rename the pool code too"),
    ({"pools.web.renamed_from": "web"}, "pools.web.renamed_from", "no pool of the recipe has", "leave it out"),
    ({"pools.web.renamed_from": "a b"}, "pools.web.renamed_from", "letters, digits", "the name the pool had"),
    ({"pools.web.renamed_from": 2024}, "pools.web.renamed_from", "text", "in quotes"),
    ({"pools.web.renamed_from": "old", "pools.code.renamed_from": "old"}, "pools.code.renamed_from", "one pool had", "remove one"),
    # the trainer's settings
    ({"trainer": 5}, "trainer", "a mapping", "{learning_rate: 3e-4}"),
    ({"trainer": {"a": [1, {"b": math.inf}]}}, "trainer.a.1.b", "text, a whole number", "in quotes"),
    ({"trainer": {"model": {"_target_": "os.system"}}}, "trainer.model._target_", "no _target_", "leave it out"),
    # policies
    ({"policy": {"every": "1M"}}, "policy._target_", "a value", "recipe.maths.policies"),
    ({"policy": {"_target_": "a.B"}}, "policy.every", "a value", "every: 1B"),
    ({"policy": {"_target_": "a.B", "every": 0}}, "policy.every", "1 or more", "use 1"),
    ({"policy": {"_target_": "B", "every": 1}}, "policy._target_", "a dotted name", "recipe.maths.policies"),
    ({"policy": {"_target_": "a.B", "every": 1, "deep": {"_target_": "c.D"}}}, "policy.deep._target_", "no _target_", "leave it out"),
    ({"policy": "a.B"}, "policy", "a mapping", "every: 1B"),
    ({"stages.short.policy": {}}, "stages.short.policy", "one of", "no key of this place"),
    # _target_ stands nowhere else
    ({"_target_": "os.system"}, "_target_", "one of count", "policy._target_"),
    ({"stages.short._target_": "os.system"}, "stages.short._target_", "one of", "policy._target_"),
    ({"pools.web._target_": "os.system"}, "pools.web._target_", "one of", "policy._target_"),
    ({"pools": {"_target_": {"path": "x"}}, QUOTAS: {"_target_": "100%"}}, "pools._target_", "not _target_", "to target"),
    # small runs that simulate large ones
    ({"simulate_budget": 999_999}, "simulate_budget", "1000000 or more", "at most 999999"),
    ({"simulate_budget": "10G"}, "simulate_budget", "whole number", "did you mean 'B', a billion"),
    # sink, tokenizer
    ({"sink": "parket"}, "sink.format", "parquet", "did you mean 'parquet'?"),
    ({"tokenizer": {}}, "tokenizer", "exactly one of builtin, path", "{builtin: bytes}"),
    ({"tokenizer": {"builtin": "byte"}}, "tokenizer.builtin", "bytes", "did you mean 'bytes'?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "where", "expected", "fix"),
    FAULTS,
    ids=[f"{row[1]}-{number}" for number, row in enumerate(FAULTS)],
)
def test_a_fault_is_told_at_its_place_with_the_way_out(problems, changes, where, expected, fix):
    found = {problem.where: problem for problem in problems(changes)}
    assert where in found, list(found)
    assert expected in found[where].expected
    assert fix in found[where].fix


@pytest.mark.parametrize("changes", [row[0] for row in FAULTS])
def test_every_line_of_a_fault_is_one_line_and_says_something(problems, changes):
    for problem in problems(changes):
        for text in (problem.where, str(problem.given), problem.expected, problem.fix):
            assert text.strip() and "\n" not in text and len(text) < 300


def test_all_problems_are_told_at_once(problems):
    found = problems(
        {
            "seed": -1,
            "pools.web.pat": "x",
            "stages.short.quotta": 1,
            QUOTAS: {"web": "90%", "code": "5%"},
            "stages.short.slicing": {"stride": 9000},
            "stages.other": {"like": "short", "context": 0},
            "groups.g": ["nobody"],
        }
    )
    assert {problem.where for problem in found} >= {
        "seed",
        "pools.web.pat",
        "stages.short.quotta",
        QUOTAS,
        "stages.other.context",
        "groups.g.pools",
    }


def test_one_fault_makes_one_problem(problems):
    for changes in ({"seed": -1}, {f"{QUOTAS}.web": 1}, {"stages.short.context": 0}, {"pools.web.pat": "x"}):
        assert len(problems(changes)) == 1


def test_M05_the_second_stage_is_named(problems):
    found = problems({"stages.long": {"like": "short", "weights": {"web": 0, "code": 0}}})
    assert [problem.where for problem in found] == ["stages.long.weights"]
    assert "web" in str(found[0].given) and "0" in str(found[0].given)


def test_a_value_that_is_wrong_for_every_heir_is_told_once_where_it_is_written(problems):
    stages = {name: {"tokens": "1M", "quotas": {"web": "50%", "code": "50%"}} for name in ("a", "b")}
    every = {"context": 512, "batch": {"tokens": 1000}, "slicing": {"window": 8, "stride": 9}}
    found = problems({"stages": stages, "every_stage": every})
    assert [problem.where for problem in found] == ["every_stage.batch.tokens", "every_stage.slicing.stride"]


def test_a_value_that_is_wrong_for_one_heir_is_told_at_that_stage(problems):
    stages = {
        name: {"tokens": "1M", "quotas": {"web": "50%", "code": "50%"}, "context": size}
        for name, size in (("a", 512), ("b", 8))
    }
    found = problems(
        {"stages": stages, "every_stage": {"batch": {"sequences": 8}, "slicing": {"stride": 16}}}
    )
    assert [problem.where for problem in found] == ["stages.b.slicing.stride"]


@pytest.mark.parametrize("name", [False, None, 1.5])
def test_G03_a_name_that_was_turned_into_a_value_is_refused(problems, name):
    found = problems({"pools": {name: {"path": "x"}, "web": {"path": "y"}}, QUOTAS: {"web": "100%"}})
    assert any("quotes" in problem.fix and problem.where == f"pools.{name}" for problem in found)


def test_pools_are_not_opened_before_the_recipe_is_sound(problems, tmp_path):
    found = problems({"pools.web.path": str(tmp_path / "missing"), QUOTAS: {"web": 0, "code": 0}})
    assert [problem.where for problem in found] == [f"{QUOTAS}.web", f"{QUOTAS}.code"]


def test_the_message_is_titled_with_the_recipe(problems, small):
    from recipe.errors import RecipeError

    with pytest.raises(RecipeError, match=r"^small\.yaml: 1 problem\n  seed\n    given     -1\n"):
        small({"seed": -1})
