// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodeipam

import (
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// bookOf returns a book of networks of Pods.
func bookOf(t interface{ Fatal(...any) }, o Options) *book {
	pools, err := o.pools(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return newBook(pools, newCounts())
}

// give assigns ranges to a Node, and returns them as text.
func give(b *book, name string) string {
	ranges, _, full := b.assign(name, types.UID(name))
	if full != nil {
		return full.String()
	}
	return list(ranges)
}

func TestAFreeRangeIsGivenAgainAfterAllOthers(t *testing.T) {
	b := bookOf(t, Options{ClusterCIDR: "10.0.0.0/22"})
	for i, want := range []string{"10.0.0.0/24", "10.0.1.0/24"} {
		if got := give(b, fmt.Sprint("n", i)); got != want {
			t.Fatalf("n%d gets %s, want %s", i, got, want)
		}
	}
	if n := b.release("n0"); n != 1 {
		t.Fatalf("%d ranges became free, want 1", n)
	}
	for i, want := range []string{"10.0.2.0/24", "10.0.3.0/24", "10.0.0.0/24", "4 of 4 ranges of 10.0.0.0/22 are used"} {
		if got := give(b, fmt.Sprint("m", i)); got != want {
			t.Fatalf("m%d gets %s, want %s", i, got, want)
		}
	}
	if got := give(b, "n1"); got != "10.0.1.0/24" {
		t.Errorf("a Node that has a range gets %s", got)
	}
}

func TestAProcessThatStartsGivesTheRangesBehindTheLastOneFirst(t *testing.T) {
	b := bookOf(t, Options{ClusterCIDR: "10.0.0.0/22,fd00::/62"})
	b.hold("a", "1", []netip.Prefix{netip.MustParsePrefix("10.0.1.0/24"), netip.MustParsePrefix("fd00:0:0:3::/64")})
	b.advance()
	for i, want := range []string{"10.0.2.0/24, fd00::/64", "10.0.3.0/24, fd00:0:0:1::/64", "10.0.0.0/24, fd00:0:0:2::/64"} {
		if got := give(b, fmt.Sprint("n", i)); got != want {
			t.Errorf("n%d gets %s, want %s", i, got, want)
		}
	}
}

func TestOfTwoNetworksANodeGetsARangeOfBothOrNone(t *testing.T) {
	b := bookOf(t, Options{ClusterCIDR: "10.0.0.0/16,fd00::/63"})
	for i := range 2 {
		give(b, fmt.Sprint("n", i))
	}
	for i := range 10 {
		if got, want := give(b, fmt.Sprint("m", i)), "2 of 2 ranges of fd00::/63 are used"; got != want {
			t.Fatalf("m%d gets %s, want %s", i, got, want)
		}
	}
	if u := b.usages()[0]; u.used != 2 {
		t.Errorf("%s: a range is lost with each try", u)
	}
}

func TestRangesFromElsewhereAreKeptFromOtherNodes(t *testing.T) {
	prefixes := func(texts ...string) (all []netip.Prefix) {
		for _, text := range texts {
			all = append(all, netip.MustParsePrefix(text))
		}
		return all
	}
	b := bookOf(t, Options{ClusterCIDR: "10.0.0.0/21,fd00::/61", ServiceClusterIPRange: "10.0.0.0/25"})
	for _, step := range []struct {
		node, uid string
		ranges    []netip.Prefix
		free      int
		others    string
		used      string
	}{
		{"wide", "1", prefixes("10.0.2.0/23"), 0, "", "3 0"},
		{"small", "2", prefixes("10.0.4.128/26"), 0, "", "4 0"},
		{"beside", "3", prefixes("10.0.4.0/25"), 0, "", "4 0"},
		{"within", "4", prefixes("10.0.3.7/32"), 0, "wide", "4 0"},
		{"turned", "5", prefixes("fd00:0:0:1::/64", "10.0.5.0/24"), 0, "", "5 1"},
		{"outside", "6", prefixes("192.168.0.0/24"), 0, "", "5 1"},
		{"turned", "5", prefixes("fd00:0:0:1::/64", "10.0.5.0/24"), 0, "", "5 1"},
		{"turned", "7", prefixes("10.0.6.0/24"), 2, "", "5 0"},
		{"wide", "1", nil, 1, "", "4 0"},
		{"within", "4", nil, 1, "", "3 0"},
		{"small", "2", nil, 0, "", "3 0"},
		{"beside", "3", nil, 1, "", "2 0"},
	} {
		var free int
		var others []string
		if step.ranges == nil {
			free = b.release(step.node)
		} else {
			free, others = b.hold(step.node, types.UID(step.uid), step.ranges)
		}
		all := b.usages()
		if got := fmt.Sprintf("%d %s %d %d", free, strings.Join(others, ","), all[0].used, all[1].used); got != fmt.Sprintf("%d %s %s", step.free, step.others, step.used) {
			t.Fatalf("%s with %s: freed, others, used are %q, want %d %q %s", step.node, list(step.ranges), got, step.free, step.others, step.used)
		}
	}
	if got := list(b.outside(prefixes("192.168.0.0/24", "10.0.1.0/24"))); got != "192.168.0.0/24" {
		t.Errorf("outside of the networks is %s", got)
	}
}

func TestThatRangesRunOutIsReportedBeforeTheyDo(t *testing.T) {
	b := bookOf(t, Options{ClusterCIDR: "10.0.0.0/16", NodeMask: 23}) // 128 ranges
	var reported []int
	for i := range 128 {
		_, crossed, _ := b.assign(fmt.Sprint("n", i), "1")
		for _, u := range crossed {
			reported = append(reported, u.used)
		}
	}
	if want := []int{103, 116, 122, 128}; !slices.Equal(reported, want) {
		t.Fatalf("it is reported with %d used ranges, want %d", reported, want)
	}
	// A Node that goes and one that comes do not report the level again. Below 95 percent it can
	// be reported again.
	for i := range 10 {
		b.release(fmt.Sprint("n", i))
		if _, crossed, _ := b.assign(fmt.Sprint("m", i), "1"); len(crossed) > 0 {
			t.Fatalf("reported again: %s", crossed[0])
		}
	}
	for i := range 7 {
		b.release(fmt.Sprint("m", i))
	}
	for i := range 7 {
		if _, crossed, _ := b.assign(fmt.Sprint("o", i), "1"); (len(crossed) > 0) != (i == 6) {
			t.Errorf("after %d Nodes that went: reported %v", i+1, crossed)
		}
	}
}

// A random history of Nodes that come, go and have ranges from elsewhere, beside a model that
// counts addresses one by one.
func TestNoAddressIsGivenTwiceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{ClusterCIDR: "10.0.0.0/26,fd00::/125", NodeMaskIPv4: 29, NodeMaskIPv6: 128}
		if rapid.Bool().Draw(t, "services") {
			o.ServiceClusterIPRange = "10.0.0.16/29,fd00::3/128"
		}
		b := bookOf(t, o)
		nodes := map[string][]netip.Prefix{}
		name := rapid.Map(rapid.IntRange(0, 11), func(i int) string { return fmt.Sprint("n", i) })
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			who := name.Draw(t, "node")
			switch rapid.SampledFrom([]string{"give", "give", "go", "hold"}).Draw(t, "what") {
			case "give":
				ranges, _, full := b.assign(who, types.UID(who))
				if was, ok := nodes[who]; ok {
					if !slices.Equal(was, ranges) {
						t.Fatalf("%s had %s and gets %s", who, list(was), list(ranges))
					}
					break
				}
				if full != nil {
					if full.used < full.all {
						t.Fatalf("no range for %s, and %s", who, full)
					}
					break
				}
				for other, held := range nodes {
					if overlap(held, ranges) {
						t.Fatalf("%s gets %s, and %s has %s", who, list(ranges), other, list(held))
					}
				}
				for text := range strings.SplitSeq(o.ServiceClusterIPRange, ",") {
					if s, err := netip.ParsePrefix(text); err == nil && overlap(ranges, []netip.Prefix{s}) {
						t.Fatalf("%s gets %s of the Services", who, list(ranges))
					}
				}
				nodes[who] = ranges
			case "go":
				b.release(who)
				delete(nodes, who)
			case "hold":
				bits := rapid.IntRange(24, 32).Draw(t, "bits")
				r := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(rapid.IntRange(0, 63).Draw(t, "address"))}), bits).Masked()
				_, others := b.hold(who, types.UID(who), []netip.Prefix{r})
				nodes[who] = []netip.Prefix{r}
				var want []string
				for other, held := range nodes {
					if other != who && overlap(held, nodes[who]) {
						want = append(want, other)
					}
				}
				if slices.Sort(want); !slices.Equal(others, want) {
					t.Fatalf("%s has %s: shared with %q, want %q", who, r, others, want)
				}
			}
			for i, p := range b.pools {
				used := 0
				for number := range p.size {
					var services []netip.Prefix
					for text := range strings.SplitSeq(o.ServiceClusterIPRange, ",") {
						if s, err := netip.ParsePrefix(text); err == nil {
							services = append(services, s)
						}
					}
					in := overlap(services, []netip.Prefix{p.at(number)})
					for _, held := range nodes {
						in = in || overlap(held, []netip.Prefix{p.at(number)})
					}
					if in {
						used++
					}
				}
				if got := b.usages()[i].used; got != used {
					t.Fatalf("%d ranges of %s are used, and the book has %d", used, p.network, got)
				}
			}
		}
	})
}
