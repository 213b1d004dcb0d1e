// Package auditlog shows the records of an audit, and checks that they are a chain.
package auditlog
