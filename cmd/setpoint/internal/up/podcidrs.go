// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"slices"

	"github.com/setpoint-io/setpoint/controllers"
)

// nodeIPAM is the alias of node-ipam-controller.
const nodeIPAM = "nodeipam"

// podNetworks are the flags of node-ipam-controller by which nodes get ranges of the same networks as those that
// simulated nodes have of their own, see docs/simulated-nodes.md. The Services of the cluster are in neither.
var podNetworks = map[string]string{
	"cluster-cidr":             "10.128.0.0/10,fd5e:7a01::/48",
	"service-cluster-ip-range": "10.96.0.0/12",
}

// allocateNodeCIDRs has node-ipam-controller run.
func allocateNodeCIDRs(chosen []*controllers.Descriptor) error {
	at := slices.IndexFunc(chosen, func(d *controllers.Descriptor) bool { return d.Alias == nodeIPAM })
	if at < 0 {
		return errors.New("--allocate-node-cidrs needs node-ipam-controller, which --controllers leaves out")
	}
	for _, f := range chosen[at].Flags {
		switch into := f.Into.(type) {
		case *bool:
			*into = f.Name == "allocate-node-cidrs" || *into
		case *string:
			if network, ok := podNetworks[f.Name]; ok {
				*into = network
			}
		}
	}
	return nil
}
