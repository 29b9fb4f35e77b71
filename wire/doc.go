// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire reads the objects that an API server sends, without decoding them.
//
// The body of a list or a watch holds many objects. This package cuts it into the encoded bytes
// of one object after the other, while it arrives: a list of a million objects needs the memory
// of its largest object, and a cache that keeps objects encoded never decodes them.
//
//	body ─▶ List        ─▶ item, item, item … and the list's resourceVersion
//	body ─▶ WatchReader ─▶ event (type + object), event, event …
//
// There are two encodings, as API servers have them:
//
//   - [Protobuf], for built-in kinds: four magic bytes, a runtime.Unknown envelope that names
//     the kind, and the message inside of it.
//   - [JSON], for every kind, custom resources included.
//
// [Encoding.ReadHead] reads the metadata of an object from its bytes, at a tenth of the cost of a
// decode, and mostly without allocating. The result, a [Head], has what a cache needs: name and
// version, labels, the bytes that related objects share ([Head.AppendFamily]), and the bytes to
// keep ([Head.AppendRest]), without managedFields, which are half of many objects. A Head has what
// a full decode has, or ReadHead returns an error; fuzz tests compare it with the real decoders.
//
// [Encoding.Text] reads one field, and [Encoding.Decode] the whole object. [Schema] decodes messages of built-in kinds as
// the trees that their JSON is; fuzz tests compare it with the types' own methods.
//
// The package does not trust its input. It checks sizes against a limit before it allocates, and
// memory grows with the bytes that have arrived, not with the length that a header claims. A body
// that ends in the middle of an object is [io.ErrUnexpectedEOF]. No input makes the package panic.
//
// The slices that the package returns are valid until the next read from the same body.
package wire
