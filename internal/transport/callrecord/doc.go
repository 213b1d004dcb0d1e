// Package callrecord says which calls are audited, and makes their records. A table
// has a row for each method: the fields of the request that say what the call concerns,
// those that are recorded as they are, and those of which a digest is recorded.
package callrecord
