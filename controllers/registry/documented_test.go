// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheControllersThatAreMissingAreDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/controllers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(document), "\n## Controllers that Setpoint does not have\n")
	if !found {
		t.Fatal("docs/controllers.md does not have the section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var documented []string
	for line := range strings.Lines(section) {
		if names, _, row := strings.Cut(strings.TrimPrefix(line, "| "), " | "); row {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(names, -1) {
				documented = append(documented, name[1])
			}
		}
	}
	missing := slices.Compact(slices.Sorted(maps.Values(absent())))
	slices.Sort(documented)
	if !slices.Equal(documented, missing) {
		t.Errorf("docs/controllers.md names as missing\n%q\nand the registry\n%q", documented, missing)
	}
}
