// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/manager"
)

// decodedFlag is how many bytes of decoded objects the manager keeps.
type decodedFlag struct{ bytes int64 }

func (d *decodedFlag) flags(flags *pflag.FlagSet) {
	d.bytes = cache.DefaultDecodedBudget
	flags.Var(d, "decoded-budget", "how much memory the objects may take that are kept decoded because controllers read them again and again; 0 keeps none")
}

func (d *decodedFlag) options() []manager.Option {
	return []manager.Option{manager.DecodedBudget(d.bytes)}
}

// String implements pflag.Value.
func (d *decodedFlag) String() string {
	return resource.NewQuantity(d.bytes, resource.BinarySI).String()
}

// Type implements pflag.Value.
func (d *decodedFlag) Type() string { return "quantity" }

// ExplainsItself says that its errors do.
func (d *decodedFlag) ExplainsItself() {}

// Set implements pflag.Value.
func (d *decodedFlag) Set(text string) error {
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("want a size, such as 64Mi, or 0: %w", err)
	}
	if size.Sign() < 0 {
		return errors.New("want a size, such as 64Mi, or 0")
	}
	d.bytes = size.Value()
	return nil
}
