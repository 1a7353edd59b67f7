// A Neo4j database in this process, without login, for the tests of crates/observe.
//
//   java --add-opens … -cp 'lib/*' Neo4jServer.java PORT
//
// It writes the address to standard output when it is ready, and ends when its input does.

import java.net.URI;
import org.neo4j.configuration.connectors.BoltConnector;
import org.neo4j.configuration.connectors.HttpConnector;
import org.neo4j.configuration.helpers.SocketAddress;
import org.neo4j.harness.Neo4j;
import org.neo4j.harness.Neo4jBuilders;

public class Neo4jServer {
    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        try (Neo4j database = Neo4jBuilders.newInProcessBuilder()
                .withConfig(HttpConnector.enabled, true)
                .withConfig(HttpConnector.listen_address, new SocketAddress("127.0.0.1", port))
                .withConfig(BoltConnector.listen_address, new SocketAddress("127.0.0.1", 0))
                .build()) {
            URI address = database.httpURI();
            System.out.println("ready at " + address);
            while (System.in.read() >= 0) {
                // Whoever started this holds its input open for as long as it is needed.
            }
        }
        // Some of the database's threads would keep the process alive.
        System.exit(0);
    }
}
