// What the page "Lessons" says around the lessons; their own words come from the studio.
export const words = {
  en: {
    title: "Lessons", lead: "Eighteen claims of the literature, each measured: read it, turn it, run it.",
    list: "All lessons", place: "Lesson {number} of {count}", claimed: "What is claimed", measured: "What is measured", read: "How to read the figure",
    from: "From: {source}", tryIt: "Try it", result: "The result", holds: "holds", fails: "does not hold", heldOf: "{held} of {of} hold",
    origin: "Measured", stored: "five seeds, with jumok", own: "here, {count} seed(s)", look: "here, a first look (effort {effort})",
    alone: "holds in {held} of {of} seeds alone", other: "Measured with other code than this.", firstLook: "Less effort proves nothing: it is a first look.",
    figure: "Figure of “{title}”", run: "Run it yourself", runLead: "The experiment is trained anew on this machine, in a process of its own. A seed takes {seconds} s on one thread at full effort.",
    seeds: "Seeds", effort: "Effort", go: "Run it", stop: "Stop", running: "{done} of {of} seeds, {seconds} s", starting: "It starts …, {seconds} s", stopped: "It was stopped.", failed: "It failed.",
    arrived: "The result is there.", prints: "What the process prints", previous: "Previous", next: "Next", seen: "read", command: "The same in a terminal:",
    row: "word {number}", mapSays: "{row} looks at {column}: {value}", lesson: "Lesson",
  },
  ko: {
    title: "배우기", lead: "문헌의 주장 열여덟 가지를 직접 재 봅니다. 읽고, 움직여 보고, 실행해 보세요.",
    list: "모든 수업", place: "수업 {number} / {count}", claimed: "무엇이 주장되었나", measured: "무엇을 재나", read: "그림 읽는 법",
    from: "출처: {source}", tryIt: "움직여 보기", result: "결과", holds: "성립", fails: "성립하지 않음", heldOf: "{of}개 중 {held}개 성립",
    origin: "측정", stored: "시드 다섯 개 (jumok 제공)", own: "이 컴퓨터, 시드 {count}개", look: "이 컴퓨터, 미리 보기 (노력 {effort})",
    alone: "시드 하나씩 따로 보면 {of}개 중 {held}개에서 성립", other: "지금과 다른 코드로 잰 결과입니다.", firstLook: "노력을 줄이면 미리 보기일 뿐, 증명이 되지는 않습니다.",
    figure: "“{title}”의 그림", run: "직접 실행하기", runLead: "이 컴퓨터에서 따로 프로세스를 띄워 실험을 처음부터 다시 합니다. 전체 노력으로 하면 스레드 하나에서 시드당 {seconds}초가 걸립니다.",
    seeds: "시드 수", effort: "노력", go: "실행", stop: "멈추기", running: "시드 {of}개 중 {done}개 완료, {seconds}초", starting: "시작하는 중 …, {seconds}초", stopped: "멈췄습니다.", failed: "실패했습니다.",
    arrived: "결과가 나왔습니다.", prints: "프로세스 출력", previous: "이전", next: "다음", seen: "읽음", command: "터미널에서 같은 일을 하려면:",
    row: "단어 {number}", mapSays: "{row} → {column}: {value}", lesson: "수업",
  },
};
