// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

// AppendSlim appends the object's bytes without managedFields.
func (h *Head) AppendSlim(dst []byte) []byte { return h.appendSlim(dst) }
