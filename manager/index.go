// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
)

// The paths of a manager beside those of health.
const (
	metricsPath     = "/metrics"
	controllersPath = "/debug/controllers"
	informersPath   = "/debug/informers"
	profilesPath    = "/debug/pprof/"
)

// index answers with the paths that there are.
func index(profiling bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		writePage(w, func(page io.Writer) {
			table := tabwriter.NewWriter(page, 0, 8, 2, ' ', 0)
			defer func() { _ = table.Flush() }() // a buffer has room
			for _, row := range [][2]string{
				{"/healthz", "the same as /livez"},
				{"/livez", "whether a restart would help; ?verbose lists the checks"},
				{"/readyz", "whether it works, or could take over at once; ?verbose lists the checks"},
				{metricsPath, "for Prometheus"},
				{controllersPath, "the keys of each controller, and what fails; ?controller=NAME, ?limit=N"},
				{informersPath, "what the informers hold, and what keeps them from being current"},
			} {
				fmt.Fprintf(table, "%s\t%s\n", row[0], row[1])
			}
			if profiling {
				fmt.Fprintf(table, "%s\t%s\n", profilesPath, "profiles of the process, for go tool pprof")
			}
		})
	}
}
