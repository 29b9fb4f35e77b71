// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxSize is the size in bytes of the largest file that Parse reads: that of a ConfigMap.
const MaxSize = 1 << 20

// Parse reads a configuration. The file name is for errors; nothing is opened, and no
// environment is read.
//
// The error joins a *Finding for each mistake of the file, in the order of its lines.
func Parse(data []byte, filename string) (*Config, error) {
	if found := bounds(data, filename); found != nil {
		return nil, found
	}
	root, found := tree(data, filename)
	if found != nil {
		return nil, found
	}
	c := &Config{file: filename, text: bytes.Clone(data), set: map[string]bool{}}
	d := newDecoder(filename)
	if root != nil {
		d.read(root, "", reflect.ValueOf(c).Elem())
	}
	if d.left < 0 {
		return nil, &Finding{File: filename, Text: fmt.Sprintf("has more than %d values, those behind an alias counted as often as it is used; take some out", mostNodes)}
	}
	for path := range d.nodes {
		c.set[path] = path != ""
	}
	r := rules{decoder: d, config: c, lines: strings.Split(string(data), "\n")}
	r.check()
	if err := d.findings.err(); err != nil {
		return nil, err
	}
	c.router, c.reads = newRouter(c), r.findNeeds()
	c.warnings = r.warnings.sorted()
	return c, nil
}

// bounds refuses a file that is too large or is no text. The YAML package does not always notice,
// and does not say where.
func bounds(data []byte, filename string) *Finding {
	if len(data) > MaxSize {
		return &Finding{File: filename, Text: fmt.Sprintf("is of %d bytes, and no more than %d are read; is this the file that you mean?", len(data), MaxSize)}
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		wrong := ""
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\r' && r != '\t':
			wrong = fmt.Sprintf("the byte 0x%02x is no text; write the file in UTF-8", data[i])
		case r == '\r' && !bytes.HasPrefix(data[i+1:], []byte("\n")), r == '\u0085', r == '\u2028', r == '\u2029':
			// YAML counts lines by them, and editors do not.
			wrong = fmt.Sprintf("%U ends a line for some programs and not for others; take it out, or write \"\\u%04x\" in double quotes", r, r)
		}
		if wrong != "" {
			before := data[:i]
			start := bytes.LastIndexByte(before, '\n') + 1
			return &Finding{
				File: filename, Line: 1 + bytes.Count(before, []byte("\n")), Column: 1 + utf8.RuneCount(before[start:]), Text: wrong,
			}
		}
		i += size
	}
	return nil
}

// tree returns the root of the only document, or nil if there is nothing in the file.
func tree(data []byte, filename string) (root *yaml.Node, found *Finding) {
	// The YAML package has panicked on malformed input before, as its history of fixes shows.
	// A file must not end the program.
	defer func() {
		if p := recover(); p != nil {
			root, found = nil, &Finding{File: filename, Text: fmt.Sprintf("is no YAML that can be read (%v)", p)}
		}
	}()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(err, filename)
	}
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, syntax(err, filename)
	default:
		return nil, &Finding{File: filename, Line: more.Line, Text: "a second document begins here; a configuration is one"}
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// syntax returns the finding for an error of the YAML package, which has a line at most.
func syntax(err error, filename string) *Finding {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	found := &Finding{File: filename}
	if line := yamlLine.FindStringSubmatch(text); line != nil {
		found.Line, _ = strconv.Atoi(line[1]) // digits; too many of them are no line
		text = text[len(line[0]):]
	}
	found.Text = "this is no YAML: " + clip(text)
	return found
}
