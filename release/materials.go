// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The parts of an SPDX document that are used here.
// Source: SPDX specification 2.3, https://spdx.github.io/spdx-spec/v2.3.
type (
	spdx struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      spdxCreation   `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Relationships []spdxRelation `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string          `json:"SPDXID"`
		Name      string          `json:"name"`
		Version   string          `json:"versionInfo,omitempty"`
		Download  string          `json:"downloadLocation"`
		Analyzed  bool            `json:"filesAnalyzed"`
		Purpose   string          `json:"primaryPackagePurpose"`
		Declared  string          `json:"licenseDeclared,omitempty"`
		Source    string          `json:"sourceInfo,omitempty"`
		Checksums []spdxChecksum  `json:"checksums,omitempty"`
		Refs      []spdxReference `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxReference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelation struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const spdxDocument = "SPDXRef-DOCUMENT"

// materials is the software bill of materials of the programs in an archive: each program
// with its sum, and the modules that it is built from, as the program itself names them.
func (r *release) materials(p platform, bin string) ([]byte, error) {
	d := spdx{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: spdxDocument,
		Name: r.archiveName(p),
		Creation: spdxCreation{
			Created:  r.created.Format(time.RFC3339),
			Creators: []string{"Organization: The Setpoint Authors", "Tool: setpoint-release-" + r.version},
		},
	}
	modules := map[string]spdxPackage{}
	var sums []string
	for _, name := range r.programs(p) {
		file := filepath.Join(bin, name)
		sum, err := sumOf(file)
		if err != nil {
			return nil, err
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading what %s is built from: %w", file, err)
		}
		c := spdxPackage{
			ID: "SPDXRef-command-" + name, Name: name, Version: r.version, Download: "NOASSERTION", Purpose: "APPLICATION",
			Declared: "Apache-2.0", Source: "commit " + r.revision, Checksums: []spdxChecksum{{"SHA256", sum}},
		}
		sums = append(sums, sum[:16])
		d.Packages = append(d.Packages, c)
		d.Relationships = append(d.Relationships, spdxRelation{spdxDocument, "DESCRIBES", c.ID})
		for _, m := range modulesOf(info) {
			modules[m.ID] = m
			d.Relationships = append(d.Relationships, spdxRelation{c.ID, "DEPENDS_ON", m.ID})
		}
	}
	// A namespace is unique: another build of a version has a different one.
	d.Namespace = "https://github.com/setpoint-io/setpoint/spdx/" + d.Name + "-" + strings.Join(sums, "-")
	d.Packages = append(d.Packages, slices.SortedFunc(maps.Values(modules), func(a, b spdxPackage) int { return cmp.Compare(a.ID, b.ID) })...)
	text, err := json.MarshalIndent(d, "", "  ")
	return append(text, '\n'), err
}

// modulesOf are the modules that a command is built from, and the standard library.
func modulesOf(info *debug.BuildInfo) []spdxPackage {
	modules := []spdxPackage{module("stdlib", strings.TrimPrefix(info.GoVersion, "go"), "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		modules = append(modules, module(m.Path, m.Version, m.Sum))
	}
	return modules
}

// module is one module. Its sum is that of go.sum, which is no sum of a single file and so
// stands among what is said about its source.
func module(name, version, sum string) spdxPackage {
	p := spdxPackage{
		ID: "SPDXRef-module-" + spdxName(name) + "-" + spdxName(version), Name: name, Version: version,
		Download: "NOASSERTION", Purpose: "LIBRARY",
		Refs: []spdxReference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + name + "@" + version}},
	}
	if sum != "" {
		p.Source = "sum of the module in go.sum: " + sum
	}
	return p
}

// spdxName is a text in letters, digits, dots and dashes, the characters of an identifier.
func spdxName(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-':
			return c
		}
		return '-'
	}, text)
}
