// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules_test

import (
	"fmt"
	"log"

	"github.com/setpoint-io/setpoint/internal/houserules"
)

// A table of packages is read from the text that people read.
func ExampleTable() {
	rows, err := houserules.Table("testdata/bad")
	if err != nil {
		log.Fatal(err)
	}
	for _, row := range rows {
		fmt.Println(row.Name, row.MayImport, row.All)
	}
	// Output:
	// object [] false
	// client [object] false
	// cache [client] false
	// controllers/<name> [cache] false
	// watch [] false
	// examples/<name> [cache] false
	// cmd/bad [] true
}
