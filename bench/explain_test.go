// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/runs"
)

func TestExplainSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for _, args := range [][]string{{"--deployments", "0"}, {"--replicas", "0"}, {"--namespaces", "2001"}, {"--answers", "0"}} {
		var out strings.Builder
		if err := run(t.Context(), append([]string{"explain"}, args...), &out); err == nil || !strings.Contains(err.Error(), strings.Join(args, " ")) {
			t.Errorf("%v: error %v, want one that names them", args, err)
		}
	}
}

// The file that a manager begins with fills its record.
func TestTheFileOfAnEarlierProcessFillsTheRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	if err := fillFile(path, 20, 10, &world{namespaces: 3}); err != nil {
		t.Fatal(err)
	}
	record, err := runs.New(runs.DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	file, err := record.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// The runs that write have 44 of 64 parts of the record.
	if s := record.Stats(); s.Bytes < s.Limit*44/64 {
		t.Errorf("the record begins with %d of %d bytes, in %d entries", s.Bytes, s.Limit, s.Restored)
	}
	found, _ := record.Find(runs.Query{Limit: 1})
	if len(found) != 1 || len(found[0].Writes) != 10 || found[0].Writes[0].Object.Kind != "Pod" {
		t.Errorf("the newest run is %+v, want one that created ten Pods", found)
	}
}
