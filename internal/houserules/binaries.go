// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"fmt"
)

// maxFile is how large a file of the repository may be: the largest source is a tenth of it.
const maxFile = 1 << 20

// Binaries holds that no program was committed by mistake: files have at most 1 MiB, and no
// zero bytes. Files below testdata are not checked.
func Binaries(root string, files []string) (found []string, err error) {
	err = eachFile(root, files, func(file string, text []byte) {
		switch {
		case len(text) > maxFile:
			found = append(found, fmt.Sprintf("%s: has %d bytes, and may have %d: commit what it is made from", file, len(text), maxFile))
		case bytes.IndexByte(text, 0) >= 0:
			found = append(found, file+": is a binary file: commit what it is made from")
		}
	})
	return found, err
}
