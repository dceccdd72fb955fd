// Aliases of this repository's for older majors, which have the same API as the newest as far as the tests go.

declare module 'express4' {
  import express from 'express';
  export default express;
}

declare module 'fastify4' {
  import fastify from 'fastify';
  export default fastify;
}

declare module 'koa2' {
  import Koa from 'koa';
  export default Koa;
}
