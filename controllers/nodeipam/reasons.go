// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"context"
	"net/netip"
	"strings"

	"github.com/setpoint-io/setpoint/controller"
)

// Codes of the reasons why a Node gets no range, or keeps one that does not fit.
const (
	codeNoRange     = "NoRangeLeft"
	codeDeleted     = "NodeIsDeleted"
	codeMalformed   = "NodeRangeMalformed"
	codeElsewhere   = "NodeRangeFromElsewhere"
	codeShared      = "NodeRangeShared"
	codeOneFamily   = "NodeHasOneFamily"
	codeNotAnswered = "NodeRangeNotConfirmed"
)

// unchangeable ends the reasons about ranges that a Node has: the API server refuses to change
// spec.podCIDRs.
const unchangeable = "the Node is deleted and created again: its spec.podCIDRs cannot change"

// because states a reason about a Node.
func because(ctx context.Context, code, text, ends string, params ...any) {
	controller.Because(ctx, controller.Reason{Code: code, Text: text, Params: controller.With(params...), Ends: ends})
}

// list writes ranges as users know them.
func list(ranges []netip.Prefix) string {
	all := make([]string, 0, len(ranges))
	for _, r := range ranges {
		all = append(all, r.String())
	}
	return strings.Join(all, ", ")
}

// networks writes the networks of the pools.
func (b *book) networks() string {
	all := make([]netip.Prefix, 0, len(b.pools))
	for _, p := range b.pools {
		all = append(all, p.network)
	}
	return list(all)
}
