// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jsontree

import "testing"

func TestWhatIsNotThereReadsAsZero(t *testing.T) {
	o := Tree{map[string]any{
		"text": "a", "flag": true, "whole": int64(3), "int": 4, "fraction": 5.0,
		"list": []any{map[string]any{"name": "one", "x": "1"}, "two", map[string]any{"name": "three", "x": "3"}},
	}}
	if o.Text("text") != "a" || !o.Flag("flag") || o.Number(0, "whole") != 3 || o.Number(0, "int") != 4 || o.Number(0, "fraction") != 5 {
		t.Error("values that are there are not read")
	}
	if o.Text("flag") != "" || o.Flag("text") || o.Number(7, "text") != 7 || o.Number(7, "none", "below") != 7 || len(o.List("text")) != 0 {
		t.Error("values of another type are not zero")
	}
	if got := o.List("list"); len(got) != 3 || got[1].Text("name") != "" {
		t.Errorf("the list is %v", got)
	}
	if got := o.Named("name", "three", "list").Text("x"); got != "3" {
		t.Errorf("the element is %q", got)
	}
	if (o.Named("name", "four", "list") != Tree{}) || (Tree{}).At("a", "b") != (Tree{}) {
		t.Error("what is not there is not empty")
	}
}
