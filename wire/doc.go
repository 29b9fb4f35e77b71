// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads what an API server sends, without decoding it.
//
// A list or a watch answer is one long body that holds many objects. This
// package cuts such a body into the encoded bytes of one object after the other,
// while it arrives, so that a list of a million objects needs the memory of its
// largest object, and so that who keeps objects encoded never decodes them.
//
//	body ─▶ List        ─▶ item, item, item … and the list's resourceVersion
//	body ─▶ WatchReader ─▶ event (type + object), event, event …
//
// Two encodings are spoken, as API servers speak them:
//
//   - [Protobuf], for built-in kinds: four magic bytes, a runtime.Unknown envelope
//     that names the kind, and inside of it the message.
//   - [JSON], which every kind has, custom resources among them.
//
// [Encoding.ReadHead] reads an object's metadata from its bytes and passes over the
// rest, which costs a tenth of a decode and mostly allocates nothing: only JSON with
// escaped texts and long lists of labels out of order do. What it returns, a
// [Head], is what a cache needs of an object: where it belongs and what version it
// is, its labels, which objects share labels and owners ([Head.AppendFamily]), and
// its bytes without managedFields ([Head.AppendSlim]), which are half of an object
// and of use to those alone who apply changes. Who wants them keeps the bytes as they
// came.
//
//	raw ─▶ ReadHead ─▶ Head ─▶ Meta          what object.MetaOf says after a decode
//	                        ─▶ AppendSlim    what to keep
//	                        ─▶ AppendFamily  what to share
//
// A head says what a full decode would say, or there is an error: fuzz tests hold it
// against the real decoders.
//
// [Encoding.Decode] turns the bytes of one object into a typed object when
// somebody wants it.
//
// Nothing read here is trusted. Sizes are checked against a limit before memory
// is taken, memory grows with the bytes that really arrive and not with the
// length that a header claims, a body that ends in the middle of an object is
// [io.ErrUnexpectedEOF], and no input makes the package panic.
//
// Slices handed out are valid until the next call that reads from the same body:
// copy what you keep.
package wire
