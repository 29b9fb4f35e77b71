package right

import (
	"flag"
	format "fmt"
	. "os"
	"os/signal"

	_ "example.org/bad/righttest"
	"k8s.io/client-go/rest"
)

func decide() {
	flag.Parse()
	signal.Ignore()
	rest.InClusterConfig()
	format.Println(Args)
	println("bye")
	format.Errorf("harmless")
}
