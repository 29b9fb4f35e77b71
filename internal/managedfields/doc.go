// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managedfields reads metadata.managedFields of decoded objects: which program wrote which fields, and when.
//
//	for _, e := range managedfields.Of(object) {
//		fmt.Println(e.Manager, e.Time)
//	}
//
// Objects come from servers and from records of any age, so malformed entries are ignored.
package managedfields
