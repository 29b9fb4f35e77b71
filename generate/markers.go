// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"go/ast"
	"go/token"
	"iter"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
	"sigs.k8s.io/controller-tools/pkg/loader"
	"sigs.k8s.io/controller-tools/pkg/markers"
)

// kubebuilder begins the names of the markers that this package reads.
const kubebuilder = "kubebuilder:"

// elsewhere are the markers of Kubebuilder that other generators read.
// Source: https://book.kubebuilder.io/reference/markers.
var elsewhere = []string{"ac:", "docs-gen:", "scaffold:", "webhook", "webhookconfiguration"}

// unknownMarkers returns a mistake for each marker that no generator reads. Without it, a
// misspelt validation would be left out of the definition without notice.
func unknownMarkers(roots []*loader.Package, registry *markers.Registry, positions *token.FileSet) SourceErrors {
	var found SourceErrors
	for _, root := range roots {
		root.NeedSyntax()
		for _, file := range root.Syntax {
			for comment := range comments(file) {
				marker, ok := markerIn(comment.Text)
				if !ok || isKnown(marker, registry) {
					continue
				}
				name, _, _ := strings.Cut(marker, "=")
				found = append(found, packages.Error{
					Pos: positions.Position(comment.Pos()).String(),
					Msg: fmt.Sprintf("no generator reads the marker +%s: is it misspelt?", name),
				})
			}
		}
	}
	return found
}

// comments returns all lines of comments in a file.
func comments(file *ast.File) iter.Seq[*ast.Comment] {
	return func(yield func(*ast.Comment) bool) {
		for _, group := range file.Comments {
			for _, comment := range group.List {
				if !yield(comment) {
					return
				}
			}
		}
	}
}

// markerIn returns the marker of Kubebuilder in a line of a comment, without its plus sign.
func markerIn(comment string) (string, bool) {
	text, isLine := strings.CutPrefix(comment, "//")
	marker, isMarker := strings.CutPrefix(strings.TrimSpace(text), "+")
	return marker, isLine && isMarker && strings.HasPrefix(marker, kubebuilder)
}

func isKnown(marker string, registry *markers.Registry) bool {
	rest := strings.TrimPrefix(marker, kubebuilder)
	if slices.ContainsFunc(elsewhere, func(prefix string) bool { return strings.HasPrefix(rest, prefix) }) {
		return true
	}
	for _, target := range []markers.TargetType{markers.DescribesPackage, markers.DescribesType, markers.DescribesField} {
		if registry.Lookup("+"+marker, target) != nil {
			return true
		}
	}
	return false
}
