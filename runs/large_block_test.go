// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

// Many runs at once may have many names of fields, which stand in the block before them.
func TestABlockOfManyWordsIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "runs")
	record, file := open(t, path, 128<<20)
	wrote(record, 0, 10)
	if err := file.Write(); err != nil {
		t.Fatal(err)
	}
	loop, n := record.Loop("config", "", "ConfigMap"), 0
	for i := range 500 {
		key := object.Key{Namespace: "ns", Name: fmt.Sprint("c", i)}
		var fields []string
		for range 16 {
			fields = append(fields, fmt.Sprintf("data[%s-%d]", strings.Repeat("x", 180), n))
			n++
		}
		runs.Add(loop, key, &runs.Ended{Began: noon, Outcome: runs.Done, Writes: []runs.Write{{
			Verb: "patch", Version: fmt.Sprint(5000 + i), Fields: fields, Object: runs.Object{Kind: "ConfigMap", Namespace: "ns", Name: key.Name},
		}}})
	}
	if err := file.Write(); err != nil {
		t.Fatal(err)
	}
	wrote(record, 10, 20)
	file.Close()
	before := len(all(record))
	record, file = open(t, path, 128<<20)
	defer file.Close()
	if got := len(all(record)); got != before {
		t.Errorf("had %d runs; the next process reads %d", before, got)
	}
}
