// What the shell says, in both languages, and how words of a page are looked up.

export const LANGUAGES = { en: "EN", ko: "한국어" };

export const PAGES = {
  translate: { en: "Translate", ko: "번역" },
  attention: { en: "Attention", ko: "어텐션" },
  recurrent: { en: "Recurrent", ko: "순환망" },
  positions: { en: "Positions", ko: "위치" },
  vision: { en: "Vision", ko: "이미지" },
  reading: { en: "Reading", ko: "글자 읽기" },
  train: { en: "Train", ko: "학습" },
  compare: { en: "Compare", ko: "비교" },
  lessons: { en: "Lessons", ko: "배우기" },
};

const SHELL = {
  en: {
    skip: "Skip to the content", waiting: "One moment …", pages: "Pages", run: "Run", language: "Language",
    theme: "Dark theme", export: "Export", png: "Picture (PNG)", svg: "Drawing (SVG)", html: "Offline page (HTML)",
    link: "Copy link", copied: "The link is copied.", saved: "Saved: {name}", close: "Close",
    damaged: "cannot be read", offline: "Saved view: it shows what was on the page when it was saved.",
    absent: "This saved page does not hold that. Open it in jumok studio.",
    wrong: "That did not work", todo: "What to do", gone: "The studio does not answer. Is jumok studio still running?",
    unlike: "The run “{run}” does not have this.", choose: "Look at one that has it:",
    training: "A tiny Transformer is learning, to look at here: {share} %", starting: "A tiny Transformer is about to learn …",
    ready: "The Transformer has learned. It is in the list of runs.", failed: "The tiny Transformer could not be trained: {message}",
    tokenTitle: "The token of this studio", tokenAsk: "Starting and stopping needs the token that jumok studio printed in its terminal, after #token=.",
    tokenField: "Token", tokenUse: "Use it", cancel: "Cancel", tokenWrong: "That is not the token.",
    cell: "{row} → {column}: {value}", pinned: "pinned",
    matrixKeys: "arrow keys move, Enter pins, Shift and Enter adds a second, Escape lets go, plus and minus zoom",
    larger: "larger", smaller: "smaller", fit: "the whole map", nowhere: "Point at a cell to see its number; click to keep it.",
  },
  ko: {
    skip: "본문으로 건너뛰기", waiting: "잠시만 기다려 주세요 …", pages: "페이지", run: "모델", language: "언어",
    theme: "어두운 화면", export: "내보내기", png: "그림 (PNG)", svg: "벡터 그림 (SVG)", html: "오프라인 페이지 (HTML)",
    link: "링크 복사", copied: "링크를 복사했습니다.", saved: "저장했습니다: {name}", close: "닫기",
    damaged: "읽을 수 없음", offline: "저장된 화면입니다. 저장할 때 보이던 내용만 담고 있습니다.",
    absent: "저장된 페이지에는 이 내용이 없습니다. jumok studio에서 열어 주세요.",
    wrong: "실행하지 못했습니다", todo: "해결 방법", gone: "스튜디오가 응답하지 않습니다. jumok studio가 실행 중인지 확인해 주세요.",
    unlike: "모델 “{run}”에는 이 기능이 없습니다.", choose: "이 기능이 있는 모델을 골라 보세요:",
    training: "여기서 살펴볼 작은 트랜스포머가 학습하고 있습니다: {share} %", starting: "작은 트랜스포머가 곧 학습을 시작합니다 …",
    ready: "트랜스포머 학습이 끝났습니다. 모델 목록에서 고를 수 있습니다.", failed: "작은 트랜스포머를 학습하지 못했습니다: {message}",
    tokenTitle: "스튜디오 토큰", tokenAsk: "시작하거나 멈추려면 jumok studio가 터미널에 표시한 #token= 뒤의 토큰이 필요합니다.",
    tokenField: "토큰", tokenUse: "사용", cancel: "취소", tokenWrong: "토큰이 맞지 않습니다.",
    cell: "{row} → {column}: {value}", pinned: "고정됨",
    matrixKeys: "화살표 키로 움직이고, Enter로 고정하고, Shift+Enter로 하나 더 고정하고, Esc로 놓습니다. +와 −로 확대·축소합니다",
    larger: "크게", smaller: "작게", fit: "전체 보기", nowhere: "칸을 가리키면 값이 보입니다. 누르면 고정됩니다.",
  },
};

// t("cell", {row: "a"}): the sentence with its values filled in; a word that is missing is looked for in English.
export const speaker = (words, language) => (key, values = {}) => {
  const text = words[language]?.[key] ?? words.en?.[key] ?? key;
  return String(text).replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
};

export const shellSpeaker = (language) => speaker(SHELL, language);
