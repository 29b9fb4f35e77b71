// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"slices"
	"strings"
)

// spark is a small chart of rates, as the points of an SVG polyline.
type spark struct {
	Width, Height int
	Points        string
	Text          string // for a screen reader
}

// sparkOf draws rates, the oldest first. Without two of them there is no chart.
func sparkOf(rates []float64, width, height int) *spark {
	if len(rates) < 2 {
		return nil
	}
	most := max(slices.Max(rates), 0.1)
	step := float64(width-2) / float64(historySteps-2)
	start := float64(width-1) - step*float64(len(rates)-1)
	var points strings.Builder
	for i, r := range rates {
		fmt.Fprintf(&points, "%.1f,%.1f ", start+step*float64(i), float64(height-1)-r/most*float64(height-2))
	}
	return &spark{Width: width, Height: height, Points: strings.TrimSpace(points.String()),
		Text: fmt.Sprintf("runs a second in the last minutes: at most %s, now %s", shortRate(most), shortRate(rates[len(rates)-1]))}
}
