"""What a datasheet says between its numbers, in English and in Chinese."""

from __future__ import annotations

from collections.abc import Callable

LANGUAGES = ("en", "zh")

_ENGLISH = {
    "intro": "Tokens are those that training was served, from the run's hash-chained ledger, added up and "
    "held against its last checkpoint; whoever reads this can recompute them with recipe audit. Where texts "
    "come from is stated by whoever prepared the pools; what nobody stated is listed as not stated.",
    "prior": "The run started from weights that had seen other tokens; these are in no number here.",
    "kinds": "public: data sets that anybody can get; licensed: used under an agreement; crawled: collected "
    "from the web; user: written by users of a service; synthetic: made by a model or program.",
    "stated": "Statements of the pools' cards, not measured.",
    "no card speaks": "No pool's card says where its texts come from.",
    "beside": "Said beside the pools, which carry no such card",
    "about stock-proportional": "Stock-proportional: what a pool gave is shared out over its documents' tags "
    "as its stock is made up; which documents were read is not looked at.",
    "about read-proportional": "Read-proportional: what a pool gave is shared out over its documents' tags "
    "as the tokens are made up that were read at least once.",
    "about epochs": "Epochs: tokens served fresh, or dropped while they were read, over what the pool holds; "
    "what a skip or a change of the pool passed over is not among them.",
    "nothing": "Nothing was left out.",
    "lineage": "A branch has read what the runs before it read up to where it branched; their tokens are in "
    "the sums above.",
    "complete": "Kind, licence, languages and dates of every pool are stated.",
    "not on record": "How many records were read for them, and which were left out, is not on record",
    "describe": "recipe pools describe POOL kind=… licence=… languages=… collected=… states them.",
    "describe beside": "Of pools without a card a file says it, by name: recipe report RUN --datasheet "
    "--about FILE, with POOL: {kind: …, licence: …, languages: …, collected: …}.",
    "by kind": "Sources by category",
    "by licence": "By licence",
    "by languages": "By language",
    "by collected": "By period of collection",
    "by generator": "By generator",
    "by provider": "By provider",
}

_CHINESE = {
    "intro": "token 数是训练实际得到的数量，取自运行的哈希链账本，逐行相加并与最后一个检查点核对；"
    "任何人都可以用 recipe audit 重新计算。文本来源由准备数据池的人声明；没有声明的一律列为“未声明”。",
    "prior": "运行从已有权重开始；那些权重此前见过的 token 不在本表任何数字中。",
    "kinds": "公开（public）：任何人可得的数据集；授权（licensed）：按协议使用；爬取（crawled）：从网络采集；"
    "用户（user）：服务的用户所写；合成（synthetic）：由模型或程序生成。",
    "stated": "以下是数据池卡片上的声明，不是测量结果。",
    "no card speaks": "没有数据池的卡片说明文本来源。",
    "beside": "以下数据池的卡片没有声明，由制表者另行说明",
    "about stock-proportional": "按存量比例：数据池给出的 token 按其存量的标签构成分摊，不看读了哪些文档。",
    "about read-proportional": "按已读比例：数据池给出的 token 按至少读过一次的 token 的标签构成分摊。",
    "about epochs": "遍数：作为新 token 提供的、以及读取时略去的 token，除以数据池的存量；跳过的步和数据池"
    "变更越过的 token 不计入。",
    "nothing": "没有略去任何内容。",
    "lineage": "分支在分叉之前读过它的祖先运行读过的内容；这些 token 已计入上面的总数。",
    "complete": "每个数据池的类别、许可、语言和日期都已声明。",
    "not on record": "以下数据池读入了多少条记录、略去了哪些，没有记录在案",
    "describe": "用 recipe pools describe POOL kind=… licence=… languages=… collected=… 声明。",
    "describe beside": "没有卡片的数据池用文件按名声明：recipe report RUN --datasheet --about FILE，"
    "内容如 POOL: {kind: …, licence: …, languages: …, collected: …}。",
    "by kind": "按来源类别",
    "by licence": "按许可",
    "by languages": "按语言",
    "by collected": "按采集时间",
    "by generator": "按生成器",
    "by provider": "按提供方",
    "Datasheet of run ": "运行数据说明书：",
    "step": "步",
    " (not complete)": "（未完成）",
    "positions": "位置",
    "tokens of documents served": "已提供的文档 token",
    "of them fresh": "其中新 token",
    "tokens spent": "已用 token",
    " (counted: ": "（计数方式：",
    ")": "）",
    "pools": "数据池",
    "tokenizer": "分词器",
    "created": "创建时间",
    "record": "记录",
    "weights it started from": "起始权重",
    "kind": "类别",
    "licence": "许可",
    "languages": "语言",
    "collected": "采集时间",
    "generator": "生成器",
    "crawler": "爬虫",
    "provider": "提供方",
    "description": "说明",
    "url": "网址",
    "contact": "联系",
    "share": "占比",
    "fresh": "新 token",
    "stock-proportional": "按存量比例",
    "read-proportional": "按已读比例",
    "all": "合计",
    "pool": "数据池",
    "documents": "文档",
    "tokens it holds": "存量 token",
    "tokens read at least once": "至少读过一次的 token",
    "epochs": "遍数",
    "withdrawn": "撤回",
    "fingerprint": "指纹",
    "Pools": "数据池",
    "What cards say": "卡片声明",
    "tag": "标签",
    "not stated": "未声明",
    "not synthetic": "非合成",
    "(without this tag)": "（无此标签）",
    "(other values)": "（其他值）",
    "in training": "训练中",
    "in preparing": "准备时",
    ", all splits": "（全部划分）",
    "tokens": "token",
    "records": "条记录",
    "Left out": "略去的内容",
    "when": "何时",
    "why": "原因",
    "how many": "数量",
    "yes": "是",
    "no: other tokens": "否：不同的 token",
    "run": "运行",
    "steps": "步",
    "in the sums above": "计入上面的总数",
    "Lineage": "谱系",
    "Not stated": "未声明",
    "keys": "键",
    "public": "公开",
    "licensed": "授权",
    "crawled": "爬取",
    "user": "用户",
    "synthetic": "合成",
    "body": "正文 token",
    "labels": "标签（预测目标）",
    "tail": "文档尾部",
    "short": "过短",
    "oversize": "过长",
    "thinned": "抽稀",
    "duplicate": "重复",
    "skipped": "跳过",
    "unread": "未读",
    "separators": "分隔标记",
    "empty": "空",
    "near duplicate": "近似重复",
    "other split": "属于另一划分",
    "needs": "缺少所需章节",
    "invalid utf8": "UTF-8 无效",
    "invalid json": "JSON 无效",
    "too long": "记录过长",
    "truncated": "不完整",
    "lone surrogate": "孤立的代理码位",
    "text missing": "没有正文",
    "text not text": "正文不是文本",
    "empty file": "空文件",
    "not an object": "不是 JSON 对象",
    "bad id": "标识无效",
    "bad group": "分组无效",
    "bad tag": "标签无效",
    "bad sections": "章节无效",
    "bad member": "归档成员无效",
    "the pool is not here, or cannot be opened": "数据池不在这里，或无法打开",
    "another pool is there now: what its card says is not of this run": "现在那里是另一个数据池："
    "其卡片所述与本次运行无关",
}


def words(lang: str) -> Callable[[str], str]:
    """What turns a key into words; what has none stands for itself.

    >>> words("zh")("licence"), words("en")("licence"), words("en")("by licence")
    ('许可', 'licence', 'By licence')
    """
    table = _CHINESE if lang == "zh" else _ENGLISH
    return lambda key: table.get(key, key)
