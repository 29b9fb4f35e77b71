// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"
)

// SourceErrors is the error of packages or markers that cannot be read. Each names its file, from the
// folder of the module on, and line and column.
type SourceErrors []packages.Error

// Error returns a line for each mistake.
func (m SourceErrors) Error() string {
	lines := make([]string, len(m))
	for i, mistake := range m {
		lines[i] = mistake.Error()
	}
	return strings.Join(lines, "\n")
}

// in returns the mistakes with paths that begin at a folder, if they are below it.
func (m SourceErrors) in(dir string) SourceErrors {
	short := slices.Clone(m)
	for i := range short {
		short[i].Pos = strings.TrimPrefix(short[i].Pos, dir+string(filepath.Separator))
	}
	return short
}

// mistakesIn returns the mistakes of packages and of what they import.
//
// A type that is not declared is none: methods that are to be generated do not exist yet.
// Where a generator needs the type, it reports a mistake of its own.
func mistakesIn(roots []*loader.Package) SourceErrors {
	raw := make([]*packages.Package, len(roots))
	for i, root := range roots {
		raw[i] = root.Package
	}
	var found SourceErrors
	packages.Visit(raw, nil, func(p *packages.Package) {
		for _, e := range p.Errors {
			if e.Kind != packages.TypeError && !slices.Contains(found, e) {
				found = append(found, e)
			}
		}
	})
	return found
}
