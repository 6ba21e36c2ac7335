// Package replicas proves that several instances behind one address are as good as one:
// real processes, a real PostgreSQL, a plain TCP balancer that knows nothing of what
// it carries, kills and outages. It holds tests only.
//
// make test runs short forms; USHER_PROOF=1 the long ones.
package replicas
