// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package linecount

import (
	"errors"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Folder returns the lines of code in the Go files of a folder, tests left out. A
// folder without any is an error.
func Folder(dir string) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, fmt.Errorf("counting lines: %w", err)
	}
	total := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("counting lines: %w", err)
		}
		n, err := Text(text)
		if err != nil {
			return 0, fmt.Errorf("counting lines of %s: %w", file, err)
		}
		total += n
	}
	if total == 0 {
		return 0, fmt.Errorf("counting lines: no Go files in %s", dir)
	}
	return total, nil
}

// Text returns the lines of code in a Go file.
func Text(text []byte) (int, error) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	var errs []error
	s.Init(file, text, func(at token.Position, message string) {
		errs = append(errs, fmt.Errorf("line %d: %s", at.Line, message))
	}, 0) // comments are left out
	n, last := 0, 0
	for {
		at, t, literal := s.Scan()
		if t == token.EOF {
			return n, errors.Join(errs...)
		}
		if t == token.SEMICOLON && literal != ";" {
			continue // the scanner's own, at the end of a line
		}
		// A raw string may have several lines; what begins on the last of them is no
		// line of its own.
		first := file.Line(at)
		end := first + strings.Count(literal, "\n")
		n += end - max(first-1, last)
		last = end
	}
}
