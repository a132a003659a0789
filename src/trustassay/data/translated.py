"""Names of columns in other languages, and other English words for them.

Each name is in small letters, without accents, its words joined by underscores
(:func:`trustassay.data.spelling.normal`).
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["TRANSLATED"]

_WORDS: Mapping[str, str] = {
    "question": (
        "frage fragen nutzerfrage kundenfrage anfrage demande pregunta consulta "
        "pergunta domanda quesito vraag 質問 質問文 問い 問題 问题 提问 提問 user_question "
        "customer_question"
    ),
    "answer": (
        "antwort antworten reponse respuesta contestacion resposta risposta antwoord 回答 回答文 "
        "答え 応答 答案 答复 答覆 回复 回覆 bot_answer generated_answer "
        "antwort_des_modells reponse_du_modele respuesta_del_modelo "
        "resposta_do_modelo risposta_del_modello"
    ),
    "context": (
        "kontext kontexte textstelle textstellen abschnitt abschnitte passage passages contexte "
        "contextes extrait extraits contexto contextos pasaje pasajes fragmento fragmentos trecho "
        "trechos contesto contesti brano brani passaggio passaggi contexten "
        "fragment fragmenten 文脈 コンテキスト 参考文書 参照文書 文書 上下文 语境 語境 参考文档 "
        "参考资料 參考資料 段落 文档 文檔 retrieved_passages retrieved_chunks chunks"
    ),
    "source": (
        "sources quelle quellen quelltext fuente fuentes fonte fontes fonti bron bronnen 出典 出所 "
        "情報源 来源 來源 出处 出處"
    ),
    "ground_truth": (
        "gold gold_answer gold_answers golden_answer expected_answer correct_answer "
        "right_answer reference_answer ideal_answer target_answer musterantwort musterlosung "
        "musterloesung referenzantwort richtige_antwort erwartete_antwort korrekte_antwort "
        "reponse_attendue reponse_correcte reponse_de_reference bonne_reponse respuesta_correcta "
        "respuesta_esperada respuesta_de_referencia resposta_correta resposta_esperada "
        "resposta_de_referencia risposta_corretta risposta_attesa risposta_di_riferimento "
        "juist_antwoord juiste_antwoord correct_antwoord verwacht_antwoord referentieantwoord 正解 "
        "模範解答 正答 期待される回答 正确答案 正確答案 标准答案 標準答案 参考答案 參考答案"
    ),
    "id": (
        "nr lfd_nr kennung identifiant identificador identificativo identificatie "
        "番号 識別子 编号 編號 序号 序號"
    ),
    "model": "modell sprachmodell modele modelo modello モデル モデル名 模型 模型名称 模型名稱",
}
TRANSLATED: Mapping[str, str] = {
    name: known for known, names in _WORDS.items() for name in names.split()
}
"""The known name of each."""
