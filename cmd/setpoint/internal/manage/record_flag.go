// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"fmt"
	"math"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/runs"
)

// recordFlag is how large the record of runs may become, and the file that keeps it.
type recordFlag struct {
	bytes int
	file  string
}

func (r *recordFlag) flags(flags *pflag.FlagSet) {
	r.bytes = runs.DefaultBytes
	flags.Var(r, "run-record-size", "how much memory the record of the controllers' runs may take; 0 switches it off")
	flags.StringVar(&r.file, "run-record-file", "", "`file` that keeps the record of the controllers' runs when the process ends (default: none)")
}

func (r *recordFlag) options() []manager.Option {
	return []manager.Option{manager.RunRecord(r.bytes), manager.RunRecordFile(r.file)}
}

// String implements pflag.Value.
func (r *recordFlag) String() string {
	return resource.NewQuantity(int64(r.bytes), resource.BinarySI).String()
}

// Type implements pflag.Value.
func (r *recordFlag) Type() string { return "quantity" }

// ExplainsItself says that its errors do.
func (r *recordFlag) ExplainsItself() {}

// Set implements pflag.Value.
func (r *recordFlag) Set(text string) error {
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("want a size, such as 16Mi, or 0: %w", err)
	}
	bytes := size.Value()
	if bytes != 0 && (bytes < runs.LeastBytes || bytes > math.MaxInt32) {
		return fmt.Errorf("want 0, or %dKi to %dMi", runs.LeastBytes>>10, math.MaxInt32>>20)
	}
	r.bytes = int(bytes)
	return nil
}
