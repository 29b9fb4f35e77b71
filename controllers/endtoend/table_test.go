// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/registry"
)

// tableRow matches a row of the table of controllers, up to the name and the folder.
var tableRow = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\(`(controllers/[a-z]+)`\\)[^|]* \\|")

func TestTheDocumentedTableIsOfAllControllersAndTheirFolders(t *testing.T) {
	text, err := os.ReadFile("../../docs/controllers.md")
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for _, row := range tableRow.FindAllSubmatch(text, -1) {
		documented = append(documented, string(row[1]))
		if _, err := os.Stat("../../" + string(row[2]) + "/doc.go"); err != nil { //nolint:gosec // a folder of the repository
			t.Errorf("the folder of %s: %v", row[1], err)
		}
	}
	for _, entry := range registry.Known() {
		if !slices.Contains(documented, entry.Name) {
			t.Errorf("docs/controllers.md says nothing of %s", entry.Name)
		}
	}
	if n := len(registry.Known()); len(documented) != n {
		t.Errorf("docs/controllers.md has %d rows, for %d controllers", len(documented), n)
	}
}
