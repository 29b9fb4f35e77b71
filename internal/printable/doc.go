// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printable makes text from objects, servers and clients safe to show. Such text may have characters that steer a
// terminal or turn the direction of the text after them. They are replaced by their escapes: [Text] is for people, [Line] for one line of
// bounded length, and [JSON] for encoded JSON, whose meaning stays the same.
package printable
