// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// maxFile is how large a file of the repository may be: the largest source is a tenth of it.
const maxFile = 1 << 20

// Binaries holds that no program was committed by mistake: files have at most 1 MiB, and no
// zero bytes. Files below testdata are not looked at.
func Binaries(root string, files []string) ([]string, error) {
	var found []string
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("looking for binary files: %w", err)
		}
		switch {
		case len(text) > maxFile:
			found = append(found, fmt.Sprintf("%s: has %d bytes, and may have %d: commit what it is made from", file, len(text), maxFile))
		case bytes.IndexByte(text, 0) >= 0:
			found = append(found, file+": is a binary file: commit what it is made from")
		}
	}
	return found, nil
}
