// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client speaks with an API server.
//
// A [Client] is one server with one set of credentials. On it stand three layers,
// each usable on its own:
//
//   - [Request] builds one HTTP request, piece by piece:
//     c.Request(http.MethodGet).Resource(pods).Namespace("team-a").Name("web").Do(ctx).
//   - [Client.List] and [Client.Watch] hand out the encoded objects of a resource
//     as they arrive, for caches that decode late or never.
//   - [For] is the typed view that a controller uses:
//     client.For[*corev1.Deployment](c).Get(ctx, key).
//
// Subresources are views of their own. [Sub] is for those that take objects of another kind,
// such as the scale of a Deployment or the eviction of a Pod, and [Typed.Sub] for those of the
// kind itself, such as its status. The name of the object stands in the path of the request.
//
// Transport, TLS, tokens and exec plugins are those of client-go's rest package,
// so that every kubeconfig works as it does with kubectl. What runs above a
// connection is ours.
//
// # Encoding
//
// Built-in kinds travel as protobuf, everything else as JSON. The server has the
// last word: what it answers is read by its Content-Type. Of a server that has no form for
// the metadata of an object alone, the whole object is read.
//
// A [Selection] can ask the server to leave managedFields out. Servers that do not know
// how to send them. One that refuses the request for it is asked again without.
//
// # Errors
//
// An answer that is an error is an apierrors.APIStatus, so that
// apierrors.IsNotFound and its siblings work. An error without an answer is
// wrapped with what was asked for. [Unanswered] tells the two apart where it
// matters: after it, nobody knows whether a write happened.
//
// # Limits
//
// A client does not limit its own rate: the server has priority and fairness for
// that. Where an answer carries a Retry-After, the request is sent again, up to ten times,
// after the time that the server names and up to half of it more, but after no more than a
// minute and a half. A write whose answer leaves open whether it was carried out
// ([Unanswered]) is sent once.
//
// # Writes can be observed
//
// A [Recorder] in a request's context is told of every write and its outcome.
// The controller package uses it so that a reconcile waits for its own writes.
package client
