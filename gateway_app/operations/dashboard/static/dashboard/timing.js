const UNSEEN_FRAME_MS = 250; // a hidden page has no animation frames

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const painted = () => new Promise(requestAnimationFrame);
export const frame = () => Promise.race([painted(), pause(UNSEEN_FRAME_MS)]);
