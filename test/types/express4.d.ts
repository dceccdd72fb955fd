/** An alias of this repository's for Express 4, which has the same API as Express 5 as far as the tests go. */
declare module 'express4' {
  import express from 'express';
  export default express;
}
