// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"
)

func TestTheDescriptionHasWhatTheHelpShows(t *testing.T) {
	var out bytes.Buffer
	if err := describe(command(io.Discard), &out); err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	if d.Name != "setpoint generate" || d.Usage != "setpoint generate [PACKAGE...] [flags]" || d.Short == "" || d.Long == "" || d.Example == "" {
		t.Errorf("described is %+v", d)
	}
	for _, want := range []flagDescription{
		{Name: "check", Usage: "write nothing, and fail if a file is out of date"},
		{Name: "crd-dir", Value: "folder", Default: "config/crd", Usage: "folder for CustomResourceDefinitions, in that of the module"},
		{Name: "help", Shorthand: "h", Usage: "help for generate"},
	} {
		if !slices.Contains(d.Flags, want) {
			t.Errorf("no flag is %+v; there are %+v", want, d.Flags)
		}
	}
}
