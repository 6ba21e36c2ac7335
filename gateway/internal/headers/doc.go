// Package headers compares the headers that mirror parts of a request (method, name and
// annotated arguments) with its body, so that a proxy on the way and the gateway decide by
// the same values.
//
// [CheckMethodAndName] and [CheckParams] return the error of the specification. [Tables]
// remember which arguments of which tools travel in headers, as tools/list says.
package headers
