// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"fmt"
	"net/netip"
)

// levels are how full a pool is when an Event says so, in percent: before a Node gets no range.
var levels = [...]int{80, 90, 95, 100}

// slack is how far the usage falls below a level before the level can be reported again, in
// percent of the pool.
const slack = 5

// usage is how full a pool is.
type usage struct {
	network             netip.Prefix
	used, all, services int // ranges; services are those of used that have addresses of Services
}

func (p *pool) usage() usage { return usage{p.network, p.count, p.size, p.services} }

// String is the usage for users.
func (u usage) String() string {
	text := fmt.Sprintf("%d of %d ranges of %s are used", u.used, u.all, u.network)
	if u.services > 0 {
		text += fmt.Sprintf(", %d of them by the addresses of Services", u.services)
	}
	return text
}

// level returns the highest of the levels that a number of used ranges has reached, or 0.
func (p *pool) level(used int) (reached int) {
	for _, percent := range levels {
		if used*100 >= p.size*percent {
			reached = percent
		}
	}
	return reached
}

// rise reports whether the pool has reached a level that was not reported.
func (p *pool) rise() bool {
	now := p.level(p.count)
	if now <= p.reported {
		return false
	}
	p.reported = now
	return true
}

// fall lowers the reported level once the usage is well below it.
func (p *pool) fall() {
	p.reported = min(p.reported, p.level(p.count+p.size*slack/100))
}
