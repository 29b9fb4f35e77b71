// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"text/tabwriter"
)

// row is a line of the index.
type row struct{ path, about string }

// index lists the pages, in the order in which they were added.
func (s *Server) index(w http.ResponseWriter, _ *http.Request) {
	rows := s.rows
	if s.options.Profiling {
		rows = append(slices.Clip(rows), row{profilesPath, "profiles of the process, for go tool pprof"})
	}
	WritePage(w, func(page io.Writer) {
		table := tabwriter.NewWriter(page, 0, 8, 2, ' ', 0)
		defer func() { _ = table.Flush() }() // a buffer has room
		for _, r := range rows {
			fmt.Fprintf(table, "%s\t%s\n", r.path, r.about)
		}
	})
}
