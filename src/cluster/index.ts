export type { Channel } from './channel.js';
export { type ClusterWorkerOptions, clusterCeiling } from './cluster-ceiling.js';
export { clusterPolicySource } from './cluster-policy-source.js';
export { type ClusterServer, type ServeClusterOptions, serveCluster } from './serve-cluster.js';
