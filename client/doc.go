// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client sends requests to an API server.
//
// A [Client] is one server with one set of credentials. On it stand three layers,
// each usable on its own:
//
//   - [Request] builds one HTTP request, piece by piece:
//     c.Request(http.MethodGet).Resource(pods).Namespace("team-a").Name("web").Do(ctx).
//   - [Client.List] and [Client.Watch] return the encoded objects of a resource as they
//     arrive, for caches that decode late or never.
//   - [For] is the typed view that a controller uses:
//     client.For[*corev1.Deployment](c).Get(ctx, key).
//
// Subresources have views of their own: [Sub] for those that take objects of another kind, such
// as the scale of a Deployment or the eviction of a Pod, and [Typed.Sub] for those that take
// objects of the kind itself, such as its status.
//
// Transport, TLS, tokens and exec plugins are those of client-go's rest package, so that every
// kubeconfig works as it does with kubectl. [QuietConnections] makes the process take less CPU for each event.
//
// # Encoding
//
// The client sends and requests protobuf for built-in kinds and JSON for all others, and reads
// an answer by its Content-Type. From a server that cannot send metadata alone, it reads the
// whole object. A [Selection] can ask the server to leave out managedFields.
//
// # Errors
//
// An answer that is an error is an apierrors.APIStatus, so that apierrors.IsNotFound and its
// siblings work. An error without an answer names the request. After an error for which
// [Unanswered] returns true, a write may have happened or not.
//
// # Limits
//
// A client does not limit its own rate: the server has priority and fairness for that. If an
// answer has a Retry-After, the client sends the request again, up to ten times, after that
// time and up to half of it more, a minute and a half at most. It does not send a write again
// that may have been carried out ([Unanswered]).
//
// # Recording writes
//
// A [Recorder] in the context of a request records every write and its outcome. Package
// controller uses it, so that a reconcile waits for its own writes.
package client
