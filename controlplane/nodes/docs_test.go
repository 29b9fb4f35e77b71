// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

func TestTheStageInTheDocumentIsAccepted(t *testing.T) {
	for _, b := range documenttest.Blocks(t) {
		file := filepath.Join(t.TempDir(), "stage.yaml")
		if err := os.WriteFile(file, []byte(b.Text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := loadStages([]string{file}, nil); err != nil {
			t.Errorf("%s: %v", b, err)
		}
	}
}
