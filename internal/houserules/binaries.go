// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package houserules

import (
	"bytes"
	"fmt"
	"path"
)

// maxFile is how large a file of the repository may be: the largest source is a tenth of it.
const maxFile = 1 << 20

// Pictures of the page cannot be drawn from text: they are what a browser shows. They are PNG files in one folder, and so
// small that a document with all of them loads at once, and the history of the repository stays small.
const (
	pictureFolder = "docs/pictures"
	maxPicture    = 300 << 10
	pngSignature  = "\x89PNG\r\n\x1a\n" // PNG specification, 5.2
)

// Binaries holds that no program was committed by mistake: files have at most 1 MiB, and no
// zero bytes. PNG files in docs/pictures are allowed, of at most 300 KiB. Files below testdata
// are not checked.
func Binaries(root string, files []string) (found []string, err error) {
	err = eachFile(root, files, func(file string, text []byte) {
		picture := path.Dir(file) == pictureFolder && path.Ext(file) == ".png" && bytes.HasPrefix(text, []byte(pngSignature))
		switch {
		case picture && len(text) > maxPicture:
			found = append(found, fmt.Sprintf("%s: has %d bytes, and a picture may have %d: take it of a smaller part", file, len(text), maxPicture))
		case picture:
		case len(text) > maxFile:
			found = append(found, fmt.Sprintf("%s: has %d bytes, and may have %d: commit what it is made from", file, len(text), maxFile))
		case bytes.IndexByte(text, 0) >= 0:
			found = append(found, file+": is a binary file: commit what it is made from")
		}
	})
	return found, err
}
