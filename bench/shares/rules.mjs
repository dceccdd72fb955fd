// Other allotment rules, to compare with the one that is used: src/ceiling/allotment.ts.
export const rules = {};
