import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.io.StringReader;
import java.io.ByteArrayInputStream;
import java.math.BigDecimal;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.Base64;

/**
 * Runs statements in H2, in its Oracle mode, for the listener of the tests. One line in, one line out; fields are parted by
 * tabs, texts are base64. Databases live in memory, by name. Arguments: port, name of this server.
 */
public class Bridge {
  /** Longer values are streamed: H2 takes no longer VARCHAR and VARBINARY. */
  static final int SHORT_LENGTH_MAX = 100_000;

  public static void main(String[] arguments) throws Exception {
    ServerSocket server = new ServerSocket(Integer.parseInt(arguments[0]), 200, InetAddress.getLoopbackAddress());
    while (true) {
      Socket socket = server.accept();
      Thread thread = new Thread(() -> serve(socket, arguments[1]));
      thread.setDaemon(true);
      thread.start();
    }
  }

  static void serve(Socket socket, String name) {
    try (socket) {
      socket.setTcpNoDelay(true);
      var in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
      var out = new PrintWriter(new OutputStreamWriter(socket.getOutputStream(), StandardCharsets.UTF_8), false);
      Connection connection = null;
      try {
        for (String line = in.readLine(); line != null; line = in.readLine()) {
          String[] fields = line.split("\t", -1);
          if (fields[0].equals("HELLO")) {
            out.print(name);
          } else if (fields[0].equals("OPEN")) {
            if (connection != null) connection.close();
            connection = DriverManager.getConnection(decode(fields[1]), "SA", "");
            connection.setAutoCommit(false);
            out.print("DONE");
          } else {
            out.print(answer(connection, fields));
          }
          out.print('\n');
          out.flush();
        }
      } finally {
        if (connection != null) {
          connection.rollback();
          connection.close();
        }
      }
    } catch (Exception error) {
      System.err.println(error);
    }
  }

  static String answer(Connection connection, String[] fields) {
    try {
      switch (fields[0]) {
        case "COMMIT":
          connection.commit();
          return "DONE";
        case "ROLLBACK":
          connection.rollback();
          return "DONE";
        case "RUN":
          return run(connection, fields);
        default:
          return "ERROR\t0\t" + encode("an unknown word");
      }
    } catch (SQLException error) {
      return "ERROR" + described(connection, error);
    }
  }

  /** RUN, statement, then one field for each row: cells parted by commas. */
  static String run(Connection connection, String[] fields) throws SQLException {
    String sql = decode(fields[1]);
    if (fields.length == 2 && !sql.contains("?")) {
      try (Statement statement = connection.createStatement()) {
        return statement.execute(sql) ? rows(statement.getResultSet()) : "COUNTS\t" + Math.max(0, statement.getUpdateCount());
      }
    }
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      StringBuilder counts = new StringBuilder("COUNTS");
      for (int row = 2; row < fields.length; row++) {
        String[] cells = fields[row].split(",", -1);
        for (int i = 0; i < cells.length; i++) set(statement, i + 1, cells[i]);
        try {
          if (statement.execute()) return rows(statement.getResultSet());
          counts.append('\t').append(statement.getUpdateCount());
        } catch (SQLException error) {
          counts.append("\tERROR ").append(described(connection, error).trim().replace('\t', ' '));
        }
      }
      return counts.toString();
    }
  }

  static void set(PreparedStatement statement, int place, String cell) throws SQLException {
    String value = cell.substring(1);
    switch (cell.charAt(0)) {
      case 'S': {
        String text = decode(value);
        if (text.length() > SHORT_LENGTH_MAX) statement.setCharacterStream(place, new StringReader(text));
        else statement.setString(place, text);
        break;
      }
      case 'D':
        statement.setBigDecimal(place, new BigDecimal(value));
        break;
      case 'B': {
        byte[] bytes = Base64.getDecoder().decode(value);
        if (bytes.length > SHORT_LENGTH_MAX) statement.setBinaryStream(place, new ByteArrayInputStream(bytes));
        else statement.setBytes(place, bytes);
        break;
      }
      default:
        statement.setNull(place, Types.NULL);
    }
  }

  /** ROWS, names with types, then one field for each row. */
  static String rows(ResultSet results) throws SQLException {
    ResultSetMetaData columns = results.getMetaData();
    int count = columns.getColumnCount();
    StringBuilder answer = new StringBuilder("ROWS\t");
    for (int i = 1; i <= count; i++) {
      answer.append(i > 1 ? "," : "").append(kind(columns.getColumnType(i))).append(encode(columns.getColumnLabel(i)));
    }
    while (results.next()) {
      answer.append('\t');
      for (int i = 1; i <= count; i++) answer.append(i > 1 ? "," : "").append(cell(results, columns.getColumnType(i), i));
    }
    return answer.toString();
  }

  static String cell(ResultSet results, int type, int place) throws SQLException {
    if (kind(type) == 'B') {
      byte[] bytes = results.getBytes(place);
      return bytes == null ? "-" : "B" + Base64.getEncoder().encodeToString(bytes);
    }
    String text = results.getString(place);
    return text == null ? "-" : "S" + encode(text);
  }

  static char kind(int type) {
    switch (type) {
      case Types.BLOB:
      case Types.BINARY:
      case Types.VARBINARY:
      case Types.LONGVARBINARY:
        return 'B';
      case Types.NUMERIC:
      case Types.DECIMAL:
      case Types.BIGINT:
      case Types.INTEGER:
      case Types.DOUBLE:
      case Types.FLOAT:
      case Types.REAL:
        return 'D';
      default:
        return 'S';
    }
  }

  /** Number and text; for a unique key the name of its constraint, which H2 calls by its index. */
  static String described(Connection connection, SQLException error) {
    String text = error.getMessage().split("; SQL statement")[0];
    if (error.getErrorCode() == 23505) text = constraint(connection, text);
    return "\t" + error.getErrorCode() + "\t" + encode(text);
  }

  static String constraint(Connection connection, String text) {
    var match = java.util.regex.Pattern.compile("\"(.+?)\\.(\\S+) ON ").matcher(text);
    if (!match.find()) return text;
    String sql = "SELECT CONSTRAINT_NAME FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = ? AND INDEX_NAME = ?";
    String owner = match.group(1).replace("\"", "");
    String name = match.group(2).replace("\"", "");
    try (PreparedStatement statement = connection.prepareStatement(sql)) {
      statement.setString(1, owner);
      statement.setString(2, name);
      ResultSet found = statement.executeQuery();
      return "(" + owner + "." + (found.next() ? found.getString(1) : name) + ")";
    } catch (SQLException ignored) {
      return text;
    }
  }

  static String decode(String text) {
    return new String(Base64.getDecoder().decode(text), StandardCharsets.UTF_8);
  }

  static String encode(String text) {
    return Base64.getEncoder().encodeToString(text.getBytes(StandardCharsets.UTF_8));
  }
}
